package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PostgresCluster is a PostgreSQL primary with streaming replicas.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.instances,selectorpath=.status.selector
// +kubebuilder:resource:shortName=pgc,categories=all
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.currentPrimary`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.postgresVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 44",message="metadata.name must have at most 44 characters, so that the names of pods and labels fit: choose a shorter one"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and hold only lower-case letters, digits and dashes, since Services are named after it: choose another"
type PostgresCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PostgresClusterSpec   `json:"spec,omitempty"`
	Status PostgresClusterStatus `json:"status,omitempty"`
}

// PostgresClusterList is a list of PostgresCluster.
//
// +kubebuilder:object:root=true
type PostgresClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PostgresCluster `json:"items"`
}

// PostgresClusterSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrap) || !has(self.bootstrap.initdb) || !has(self.bootstrap.initdb.localeProvider) || self.bootstrap.initdb.localeProvider != 'icu' || int(self.postgresVersion.split('.')[0]) >= 15",message="spec.bootstrap.initdb.localeProvider: icu needs PostgreSQL 15 or later"
// +kubebuilder:validation:XValidation:rule="!has(self.bootstrap) || !has(self.bootstrap.initdb) || !has(self.bootstrap.initdb.localeProvider) || self.bootstrap.initdb.localeProvider != 'builtin' || int(self.postgresVersion.split('.')[0]) >= 17",message="spec.bootstrap.initdb.localeProvider: builtin needs PostgreSQL 17 or later"
// +kubebuilder:validation:XValidation:rule="has(self.bootstrap) == has(oldSelf.bootstrap)",message="spec.bootstrap is read once, when the cluster is created, and cannot be changed: take the change back"
type PostgresClusterSpec struct {
	// The number of PostgreSQL instances in the cluster (1 primary + N-1 replicas).
	// More are cloned, fewer removed from the highest number down; the primary
	// stays. No instance is restarted.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	Replicas int32 `json:"replicas"`

	// The PostgreSQL version, major and minor (e.g., "15.2").
	// A minor can be changed both ways: instances are restarted one at a time. The
	// major is fixed.
	//
	// +kubebuilder:validation:Pattern=`^1[3-8]\.[0-9]+$`
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.split('.')[0] == oldSelf.split('.')[0]",message="spec.postgresVersion: the major cannot be changed in place: create a cluster of the new major and move the data, or take the change back"
	PostgresVersion string `json:"postgresVersion"`

	// Storage of each instance.
	Storage StorageSpec `json:"storage"`

	// Image replaces the image that is found through postgresVersion. It may be
	// any image that holds a PostgreSQL server of the same major. A change restarts
	// the instances, one at a time.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][a-zA-Z0-9./_:@-]*$`
	Image string `json:"image,omitempty"`

	// ImagePullPolicy of the PostgreSQL image: Always, IfNotPresent or Never.
	// Default: Kubernetes' own.
	//
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets are Secrets of this namespace with access to the registry.
	//
	// +kubebuilder:validation:MaxItems=20
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Resources of the PostgreSQL container. Memory and CPU decide the defaults of
	// PostgreSQL's own memory and worker settings.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// PostgreSQL is the configuration of the server.
	PostgreSQL PostgreSQLSpec `json:"postgresql,omitempty"`

	// Bootstrap says how the database is made. It is read once and fixed then.
	Bootstrap BootstrapSpec `json:"bootstrap,omitempty"`

	// Affinity of the pods. Unless it has a podAntiAffinity, the instances prefer
	// different nodes. A change restarts the instances, one at a time.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// Tolerations of the pods. A change restarts the instances, one at a time.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// NodeSelector of the pods. A change restarts the instances, one at a time.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// TopologySpreadConstraints of the pods; one without a labelSelector means this
	// cluster's pods. A change restarts the instances, one at a time.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// PriorityClassName of the pods. A change restarts the instances, one at a time.
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// PodMetadata is added to the pods' labels and annotations.
	PodMetadata PodMetadata `json:"podMetadata,omitempty"`

	// SecurityContext overrides parts of the security contexts.
	SecurityContext SecurityContextSpec `json:"securityContext,omitempty"`
}

// StorageSpec describes the volume of each instance.
type StorageSpec struct {
	// The size of the persistent volume, e.g., 10Gi. From 256Mi to 64Ti; it can
	// grow, and never shrinks.
	//
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*([EPTGMK]i|[EPTGMk])?$`
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).compareTo(quantity('256Mi')) >= 0 && quantity(self).compareTo(quantity('64Ti')) <= 0",message="spec.storage.size must be 256Mi to 64Ti"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(self) || !isQuantity(oldSelf) || quantity(self).compareTo(quantity(oldSelf)) >= 0",message="spec.storage.size cannot shrink: no volume can; take the change back"
	Size string `json:"size"`
	// The storage class to use for the persistent volume. It is fixed. "" means a
	// volume that was made by hand.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.storage.storageClassName is fixed when the cluster is created: take the change back"
	StorageClassName string `json:"storageClassName"`
}

// PostgreSQLSpec is the configuration of the server.
type PostgreSQLSpec struct {
	// Parameters of postgresql.conf. They win over the defaults that are derived
	// from the pod's memory and CPU. Most are reloaded; some wait for a restart of
	// PostgreSQL, which the condition Progressing then says. Names are lower-case;
	// those with a dot belong to extensions.
	//
	// The two lists are those of internal/postgres, which a test holds them to.
	//
	// +kubebuilder:validation:MaxProperties=200
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['allow_alter_system','archive_cleanup_command','archive_command','archive_library','archive_mode','bonjour','bonjour_name','cluster_name','config_file','data_directory','db_user_namespace','event_source','external_pid_file','fsync','full_page_writes','hba_file','hot_standby','ident_file','listen_addresses','log_destination','log_directory','log_file_mode','log_filename','log_line_prefix','log_rotation_age','log_rotation_size','log_truncate_on_rotation','logging_collector','port','primary_conninfo','primary_slot_name','promote_trigger_file','recovery_end_command','recovery_target','recovery_target_action','recovery_target_inclusive','recovery_target_lsn','recovery_target_name','recovery_target_time','recovery_target_timeline','recovery_target_xid','restart_after_crash','restore_command','ssl','ssl_ca_file','ssl_cert_file','ssl_crl_dir','ssl_crl_file','ssl_key_file','ssl_passphrase_command','ssl_passphrase_command_supports_reload','stats_temp_directory','sync_replication_slots','synchronized_standby_slots','synchronous_standby_names','syslog_facility','syslog_ident','syslog_sequence_numbers','syslog_split_messages','unix_socket_directories','unix_socket_group','unix_socket_permissions','wal_log_hints']))",message="spec.postgresql.parameters holds a parameter that the operator sets itself: remove it",messageExpression="'spec.postgresql.parameters: ' + self.filter(k, k in ['allow_alter_system','archive_cleanup_command','archive_command','archive_library','archive_mode','bonjour','bonjour_name','cluster_name','config_file','data_directory','db_user_namespace','event_source','external_pid_file','fsync','full_page_writes','hba_file','hot_standby','ident_file','listen_addresses','log_destination','log_directory','log_file_mode','log_filename','log_line_prefix','log_rotation_age','log_rotation_size','log_truncate_on_rotation','logging_collector','port','primary_conninfo','primary_slot_name','promote_trigger_file','recovery_end_command','recovery_target','recovery_target_action','recovery_target_inclusive','recovery_target_lsn','recovery_target_name','recovery_target_time','recovery_target_timeline','recovery_target_xid','restart_after_crash','restore_command','ssl','ssl_ca_file','ssl_cert_file','ssl_crl_dir','ssl_crl_file','ssl_key_file','ssl_passphrase_command','ssl_passphrase_command_supports_reload','stats_temp_directory','sync_replication_slots','synchronized_standby_slots','synchronous_standby_names','syslog_facility','syslog_ident','syslog_sequence_numbers','syslog_split_messages','unix_socket_directories','unix_socket_group','unix_socket_permissions','wal_log_hints'])[0] + ' is set by the operator: remove it'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.contains('.') || k in ['archive_timeout','array_nulls','authentication_timeout','autovacuum','autovacuum_analyze_scale_factor','autovacuum_analyze_threshold','autovacuum_freeze_max_age','autovacuum_max_workers','autovacuum_multixact_freeze_max_age','autovacuum_naptime','autovacuum_vacuum_cost_delay','autovacuum_vacuum_cost_limit','autovacuum_vacuum_insert_scale_factor','autovacuum_vacuum_insert_threshold','autovacuum_vacuum_max_threshold','autovacuum_vacuum_scale_factor','autovacuum_vacuum_threshold','autovacuum_work_mem','autovacuum_worker_slots','backend_flush_after','backslash_quote','bgwriter_delay','bgwriter_flush_after','bgwriter_lru_maxpages','bgwriter_lru_multiplier','bytea_output','check_function_bodies','checkpoint_completion_target','checkpoint_flush_after','checkpoint_timeout','checkpoint_warning','client_connection_check_interval','client_encoding','client_min_messages','commit_delay','commit_siblings','commit_timestamp_buffers','compute_query_id','constraint_exclusion','cpu_index_tuple_cost','cpu_operator_cost','cpu_tuple_cost','createrole_self_grant','cursor_tuple_fraction','data_sync_retry','datestyle','deadlock_timeout','debug_pretty_print','debug_print_parse','debug_print_plan','debug_print_rewritten','default_statistics_target','default_table_access_method','default_tablespace','default_text_search_config','default_toast_compression','default_transaction_deferrable','default_transaction_isolation','default_transaction_read_only','dynamic_library_path','dynamic_shared_memory_type','effective_cache_size','effective_io_concurrency','enable_async_append','enable_bitmapscan','enable_distinct_reordering','enable_gathermerge','enable_group_by_reordering','enable_hashagg','enable_hashjoin','enable_incremental_sort','enable_indexonlyscan','enable_indexscan','enable_material','enable_memoize','enable_mergejoin','enable_nestloop','enable_parallel_append','enable_parallel_hash','enable_partition_pruning','enable_partitionwise_aggregate','enable_partitionwise_join','enable_presorted_aggregate','enable_self_join_elimination','enable_seqscan','enable_sort','enable_tidscan','escape_string_warning','event_triggers','exit_on_error','extension_control_path','extension_destdir','extra_float_digits','file_copy_method','file_extend_method','force_parallel_mode','from_collapse_limit','geqo','geqo_effort','geqo_generations','geqo_pool_size','geqo_seed','geqo_selection_bias','geqo_threshold','gin_fuzzy_search_limit','gin_pending_list_limit','gss_accept_delegation','hash_mem_multiplier','hot_standby_feedback','huge_page_size','huge_pages','icu_validation_level','idle_in_transaction_session_timeout','idle_replication_slot_timeout','idle_session_timeout','intervalstyle','io_combine_limit','io_max_combine_limit','io_max_concurrency','io_method','io_workers','jit','jit_above_cost','jit_inline_above_cost','jit_optimize_above_cost','jit_provider','join_collapse_limit','krb_caseins_users','krb_server_keyfile','lc_messages','lc_monetary','lc_numeric','lc_time','lo_compat_privileges','local_preload_libraries','lock_timeout','log_autovacuum_min_duration','log_checkpoints','log_connections','log_disconnections','log_duration','log_error_verbosity','log_executor_stats','log_hostname','log_lock_failures','log_lock_waits','log_min_duration_sample','log_min_duration_statement','log_min_error_statement','log_min_messages','log_parameter_max_length','log_parameter_max_length_on_error','log_parser_stats','log_planner_stats','log_recovery_conflict_waits','log_replication_commands','log_startup_progress_interval','log_statement','log_statement_sample_rate','log_statement_stats','log_temp_files','log_timezone','log_transaction_sample_rate','logical_decoding_work_mem','maintenance_io_concurrency','maintenance_work_mem','max_active_replication_origins','max_connections','max_files_per_process','max_locks_per_transaction','max_logical_replication_workers','max_notify_queue_pages','max_parallel_apply_workers_per_subscription','max_parallel_maintenance_workers','max_parallel_workers','max_parallel_workers_per_gather','max_pred_locks_per_page','max_pred_locks_per_relation','max_pred_locks_per_transaction','max_prepared_transactions','max_replication_slots','max_slot_wal_keep_size','max_stack_depth','max_standby_archive_delay','max_standby_streaming_delay','max_sync_workers_per_subscription','max_wal_senders','max_wal_size','max_worker_processes','md5_password_warnings','min_dynamic_shared_memory','min_parallel_index_scan_size','min_parallel_table_scan_size','min_wal_size','multixact_member_buffers','multixact_offset_buffers','notify_buffers','oauth_validator_libraries','old_snapshot_threshold','operator_precedence_warning','output_plugin_libraries','parallel_leader_participation','parallel_setup_cost','parallel_tuple_cost','password_encryption','plan_cache_mode','quote_all_identifiers','random_page_cost','recovery_init_sync_method','recovery_min_apply_delay','recovery_prefetch','recursive_worktable_factor','reserved_connections','row_security','scram_iterations','search_path','seq_page_cost','serializable_buffers','session_preload_libraries','session_replication_role','shared_buffers','shared_memory_type','shared_preload_libraries','ssl_ciphers','ssl_dh_params_file','ssl_ecdh_curve','ssl_groups','ssl_max_protocol_version','ssl_min_protocol_version','ssl_prefer_server_ciphers','ssl_tls13_ciphers','standard_conforming_strings','statement_timeout','stats_fetch_consistency','subtransaction_buffers','summarize_wal','superuser_reserved_connections','synchronize_seqscans','synchronous_commit','tcp_keepalives_count','tcp_keepalives_idle','tcp_keepalives_interval','tcp_user_timeout','temp_buffers','temp_file_limit','temp_tablespaces','timezone','timezone_abbreviations','trace_recovery_messages','track_activities','track_activity_query_size','track_commit_timestamp','track_cost_delay_timing','track_counts','track_functions','track_io_timing','track_wal_io_timing','transaction_buffers','transaction_timeout','transform_null_equals','update_process_title','vacuum_buffer_usage_limit','vacuum_cleanup_index_scale_factor','vacuum_cost_delay','vacuum_cost_limit','vacuum_cost_page_dirty','vacuum_cost_page_hit','vacuum_cost_page_miss','vacuum_defer_cleanup_age','vacuum_failsafe_age','vacuum_freeze_min_age','vacuum_freeze_table_age','vacuum_max_eager_freeze_failure_rate','vacuum_multixact_failsafe_age','vacuum_multixact_freeze_min_age','vacuum_multixact_freeze_table_age','vacuum_truncate','wal_buffers','wal_compression','wal_decode_buffer_size','wal_init_zero','wal_keep_size','wal_level','wal_receiver_create_temp_slot','wal_receiver_status_interval','wal_receiver_timeout','wal_recycle','wal_retrieve_retry_interval','wal_sender_timeout','wal_skip_threshold','wal_summary_keep_time','wal_sync_method','wal_writer_delay','wal_writer_flush_after','work_mem','xmlbinary','xmloption','allow_alter_system','archive_cleanup_command','archive_command','archive_library','archive_mode','bonjour','bonjour_name','cluster_name','config_file','data_directory','db_user_namespace','event_source','external_pid_file','fsync','full_page_writes','hba_file','hot_standby','ident_file','listen_addresses','log_destination','log_directory','log_file_mode','log_filename','log_line_prefix','log_rotation_age','log_rotation_size','log_truncate_on_rotation','logging_collector','port','primary_conninfo','primary_slot_name','promote_trigger_file','recovery_end_command','recovery_target','recovery_target_action','recovery_target_inclusive','recovery_target_lsn','recovery_target_name','recovery_target_time','recovery_target_timeline','recovery_target_xid','restart_after_crash','restore_command','ssl','ssl_ca_file','ssl_cert_file','ssl_crl_dir','ssl_crl_file','ssl_key_file','ssl_passphrase_command','ssl_passphrase_command_supports_reload','stats_temp_directory','sync_replication_slots','synchronized_standby_slots','synchronous_standby_names','syslog_facility','syslog_ident','syslog_sequence_numbers','syslog_split_messages','unix_socket_directories','unix_socket_group','unix_socket_permissions','wal_log_hints'])",message="spec.postgresql.parameters holds a name that no supported PostgreSQL knows: check its spelling (names are lower-case)"
	Parameters map[string]ParameterValue `json:"parameters,omitempty"`
	// HBA rules, lines of pg_hba.conf, added before the operator's own rule for
	// everybody (scram-sha-256 over TLS). Replication keeps its place before them.
	// A change is reloaded.
	//
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=1000
	// +kubebuilder:validation:items:Pattern=`^(local|host|hostssl|hostnossl|hostgssenc|hostnogssenc)[ \t]+[^\n\r]+$`
	HBA []string `json:"hba,omitempty"`
}

// ParameterValue is the value of a parameter: one line.
//
// +kubebuilder:validation:MaxLength=1000
// +kubebuilder:validation:Pattern=`^[^\n\r]*$`
type ParameterValue string

// ParameterStrings are the parameters as plain strings.
func (s PostgreSQLSpec) ParameterStrings() map[string]string {
	values := make(map[string]string, len(s.Parameters))
	for name, value := range s.Parameters {
		values[name] = string(value)
	}
	return values
}

// BootstrapSpec says how the first instance gets its data. It is read once, when
// the cluster is created.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.bootstrap is read once, when the cluster is created, and cannot be changed: take the change back"
type BootstrapSpec struct {
	// InitDB makes a new, empty database.
	InitDB InitDBSpec `json:"initdb,omitempty"`
}

// LocaleProvider of initdb.
type LocaleProvider string

// Locale providers.
const (
	LocaleProviderLibc    LocaleProvider = "libc"
	LocaleProviderICU     LocaleProvider = "icu"
	LocaleProviderBuiltin LocaleProvider = "builtin"
)

// InitDBSpec is the new database cluster.
type InitDBSpec struct {
	// Database is the application's database. Default "app".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Database string `json:"database,omitempty"`
	// Owner is the role that owns it. Default: the database's name.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Owner string `json:"owner,omitempty"`
	// Encoding of the databases. Default UTF8.
	//
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	Encoding string `json:"encoding,omitempty"`
	// LocaleProvider: libc (default), icu (PostgreSQL 15 and later) or builtin (17
	// and later).
	//
	// +kubebuilder:validation:Enum=libc;icu;builtin
	LocaleProvider LocaleProvider `json:"localeProvider,omitempty"`
	// Locale of the provider. Default C (libc), und (icu) or C.UTF-8 (builtin).
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.@=-]+$`
	Locale string `json:"locale,omitempty"`
	// DataChecksums protect the pages of tables. Default true.
	DataChecksums *bool `json:"dataChecksums,omitempty"`
	// PostInitSQL are scripts run once by the superuser in the application's
	// database, in order.
	//
	// +kubebuilder:validation:MaxItems=50
	PostInitSQL []SQLSource `json:"postInitSQL,omitempty"`
}

// SQLSource is one key of a Secret or of a ConfigMap: exactly one is set.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type SQLSource struct {
	// SecretKeyRef is a key of a Secret.
	SecretKeyRef *KeyReference `json:"secretKeyRef,omitempty"`
	// ConfigMapKeyRef is a key of a ConfigMap.
	ConfigMapKeyRef *KeyReference `json:"configMapKeyRef,omitempty"`
}

// KeyReference is a key of an object in the cluster's namespace.
type KeyReference struct {
	// Name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key in the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key"`
}

// PodMetadata is added to pods.
type PodMetadata struct {
	// Labels of the pods, beside the operator's own. A change restarts the
	// instances, one at a time.
	//
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k in ['app','cluster','app.kubernetes.io/managed-by','app.kubernetes.io/name']) && !k.startsWith('db.my-domain.com/'))",message="spec.podMetadata.labels holds a label of the operator's own (app, cluster, app.kubernetes.io/managed-by, app.kubernetes.io/name, db.my-domain.com/...): use another"
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pods. A change restarts the instances, one at a time.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SecurityContextSpec overrides parts of the security contexts. What the
// restricted Pod Security standard forbids cannot be set.
type SecurityContextSpec struct {
	// RunAsUser is the user id of PostgreSQL. Default 999, or what the platform
	// assigns (OpenShift).
	//
	// +kubebuilder:validation:Minimum=1
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// RunAsGroup is the group id. Default 999, or what the platform assigns.
	//
	// +kubebuilder:validation:Minimum=1
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// FSGroup owns the volume. Default 999, or what the platform assigns.
	//
	// +kubebuilder:validation:Minimum=1
	FSGroup *int64 `json:"fsGroup,omitempty"`
	// FSGroupChangePolicy: OnRootMismatch (default) or Always.
	FSGroupChangePolicy *corev1.PodFSGroupChangePolicy `json:"fsGroupChangePolicy,omitempty"`
	// SeccompProfile. Default RuntimeDefault.
	SeccompProfile *corev1.SeccompProfile `json:"seccompProfile,omitempty"`
	// SELinuxOptions of the pods.
	SELinuxOptions *corev1.SELinuxOptions `json:"seLinuxOptions,omitempty"`
}

// Phase summarises the conditions in one word.
type Phase string

// Phases.
const (
	PhaseCreating Phase = "Creating"
	PhaseReady    Phase = "Ready"
	PhaseFailed   Phase = "Failed"
)

// PostgresClusterStatus is what the operator sees, and what it assigns to the
// instances.
type PostgresClusterStatus struct {
	// +kubebuilder:validation:Enum=Creating;Ready;Failed
	Phase Phase `json:"phase,omitempty"`
	// PrimaryHost is the IP address of the primary's pod; empty if none serves.
	PrimaryHost string `json:"primaryHost,omitempty"`
	// ReplicaHosts are the IP addresses of the streaming replicas' pods.
	ReplicaHosts []string `json:"replicaHosts,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Instances is the number of instances that exist.
	Instances int32 `json:"instances,omitempty"`
	// ReadyInstances is the number of instances that serve.
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// Ready is readyInstances and the wanted number, as in "2/3".
	Ready string `json:"ready,omitempty"`
	// Selector selects the cluster's pods, for the scale subresource.
	Selector string `json:"selector,omitempty"`

	// InstanceNames are the members, assigned by the operator. The primary keeps a
	// replication slot for each of the others.
	InstanceNames []string `json:"instanceNames,omitempty"`
	// TargetPrimary is the instance that shall be the primary: the operator's
	// assignment to the instances.
	TargetPrimary string `json:"targetPrimary,omitempty"`
	// CurrentPrimary is the instance that is the primary.
	CurrentPrimary string `json:"currentPrimary,omitempty"`
	// SystemIdentifier of the database cluster; empty until it was initialised.
	// Once set, no instance initialises anew.
	SystemIdentifier string `json:"systemIdentifier,omitempty"`
}
