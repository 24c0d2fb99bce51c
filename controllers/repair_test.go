//go:build envtest

package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"
)

func TestWhatOthersDoToAClusterIsRepairedOrShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	startOperator(t, w)
	w.create(t, 2)
	cluster := w.awaitReady(t)
	patch := func(object client.Object, name, text string) {
		t.Helper()
		require.NoError(t, api.Get(t.Context(), w.key(name), object))
		require.NoError(t, api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(text))))
	}
	repaired := func(what string, holds func() bool) {
		t.Helper()
		eventually(t, what, func() string { return w.story(t) }, holds)
	}

	w.With(func(w *world) {
		w.kubelet = func(pod *corev1.Pod) { setPodReady(pod, pod.Labels[naming.LabelInstance] != "db-primary") }
	})
	w.awaitReason(t, dbv1alpha1.ConditionAvailable, dbv1alpha1.ReasonPrimaryNotServing)
	assert.NotEqual(t, dbv1alpha1.PhaseReady, w.cluster(t).Status.Phase)
	w.With(func(w *world) { w.kubelet = nil })
	w.awaitReady(t)

	service := &corev1.Service{}
	require.NoError(t, api.Get(t.Context(), w.key("db-primary"), service))
	uid := service.UID
	require.NoError(t, api.Delete(t.Context(), service))
	repaired("a new read-write Service", func() bool {
		found := &corev1.Service{}
		return api.Get(t.Context(), w.key("db-primary"), found) == nil && found.UID != uid
	})

	patch(service, "db-primary", `{"spec":{"selector":{"db.my-domain.com/role":"replica"}}}`)
	repaired("the selector of the read-write Service", func() bool {
		return api.Get(t.Context(), w.key("db-primary"), service) == nil && service.Spec.Selector[naming.LabelRole] == naming.RolePrimary
	})

	secret := &corev1.Secret{}
	require.NoError(t, api.Get(t.Context(), w.key("db-app"), secret))
	require.NoError(t, api.Delete(t.Context(), secret))
	repaired("a new Secret with a password", func() bool {
		found := &corev1.Secret{}
		return api.Get(t.Context(), w.key("db-app"), found) == nil && found.UID != secret.UID && len(found.Data[naming.KeyPassword]) > 0
	})

	pod := &corev1.Pod{}
	patch(pod, "db-primary-0", `{"metadata":{"labels":{"db.my-domain.com/role":"replica"}}}`)
	repaired("the role of the primary's pod", func() bool {
		return api.Get(t.Context(), w.key("db-primary-0"), pod) == nil && pod.Labels[naming.LabelRole] == naming.RolePrimary
	})

	patch(service, "db-replicas", `{"metadata":{"ownerReferences":null}}`)
	message := w.awaitReason(t, dbv1alpha1.ConditionDegraded, dbv1alpha1.ReasonNotOurs)
	assert.Contains(t, message, "db-replicas")
	require.NoError(t, api.Get(t.Context(), w.key("db-replicas"), service))
	assert.Empty(t, service.OwnerReferences, "what has been taken from the cluster is not taken back")
	require.NoError(t, api.Delete(t.Context(), service))
	eventually(t, "the Service anew", func() string { return w.story(t) }, func() bool {
		return api.Get(t.Context(), w.key("db-replicas"), service) == nil && metav1.IsControlledBy(service, cluster)
	})
	w.awaitReady(t)
}

func TestAForbiddenWriteGivesOneSteadyPhase(t *testing.T) { // not parallel: the policy is for all namespaces
	w := newWorld(t)
	startOperator(t, w)
	w.create(t, 2)
	w.awaitReady(t)
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}},
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}}},
		},
		// People may still break a Service, and nobody may mend it.
		Validations: []admissionv1.Validation{{Expression: `object.spec.selector == {} || "broken" in object.spec.selector`, Message: "Services stay as they are"}},
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: w.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	require.NoError(t, api.Create(t.Context(), policy))
	t.Cleanup(func() { _ = api.Delete(t.Context(), policy) })
	require.NoError(t, api.Create(t.Context(), binding))
	service := &corev1.Service{}
	eventually(t, "the policy is in force", func() string { return "" }, func() bool {
		require.NoError(t, api.Get(t.Context(), w.key("db-pods"), service))
		return api.Patch(t.Context(), service, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"x"}}}`)), client.DryRunAll) != nil
	})
	require.NoError(t, api.Get(t.Context(), w.key("db-replicas"), service))
	require.NoError(t, api.Patch(t.Context(), service, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"selector":{"broken":"yes"}}}`))))
	message := w.awaitReason(t, dbv1alpha1.ConditionDegraded, dbv1alpha1.ReasonApplyFailed)
	assert.Contains(t, message, "services")
	assert.Contains(t, message, "db-replicas")

	began := w.cluster(t)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); pause(100 * time.Millisecond) {
		now := w.cluster(t)
		require.Equal(t, began.Status.Phase, now.Status.Phase, "the phase is steady")
		require.Equal(t, began.ResourceVersion, now.ResourceVersion, "the status is not written again and again")
	}
	assert.NotEqual(t, dbv1alpha1.PhaseReady, began.Status.Phase)
	assert.Equal(t, 1, w.events(t)[dbv1alpha1.ReasonApplyFailed], "one event")
	require.NoError(t, api.Delete(t.Context(), binding))
	w.awaitReady(t)
}

func TestAFaultOfAPodIsNamedAndFailedIsNoTrap(t *testing.T) {
	waiting := func(reason string, restarts int32) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			setPodReady(pod, false)
			pod.Status.ContainerStatuses[0].Ready, pod.Status.ContainerStatuses[0].RestartCount = false, restarts
			pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
		}
	}
	for name, story := range map[string]struct {
		kubelet          func(*corev1.Pod)
		reason, contains string
	}{
		"image":      {waiting("ImagePullBackOff", 0), dbv1alpha1.ReasonImageUnavailable, "postgres:15.2"},
		"crash loop": {waiting("CrashLoopBackOff", 5), dbv1alpha1.ReasonCrashLooping, "db-primary"},
		"no node": {func(pod *corev1.Pod) {
			pod.Status.ContainerStatuses = nil
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}
		}, dbv1alpha1.ReasonUnschedulable, "0/3 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kubelet = story.kubelet
			startOperator(t, w)
			w.create(t, 1)
			assert.Contains(t, w.awaitReason(t, dbv1alpha1.ConditionDegraded, story.reason), story.contains)
			assert.Equal(t, dbv1alpha1.PhaseFailed, w.cluster(t).Status.Phase)
			w.With(func(w *world) { w.kubelet = nil })
			w.awaitReady(t)
			assert.Equal(t, 1, w.events(t)[story.reason])
		})
	}
}

func TestSomebodyElsesObjectIsNeverWritten(t *testing.T) {
	meta := metav1.ObjectMeta{Labels: map[string]string{"app": "theirs"}}
	named := func(name string) metav1.ObjectMeta { m := *meta.DeepCopy(); m.Name = name; return m }
	for name, theirs := range map[string]client.Object{
		"Service": &corev1.Service{ObjectMeta: named("db-primary"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		"Secret":  &corev1.Secret{ObjectMeta: named("db-app"), StringData: map[string]string{"password": "theirs"}},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{ObjectMeta: named("db-primary-data"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: mustParse("1Gi")}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.noBinding = true // their claim is theirs to bind
			theirs.SetNamespace(w.namespace)
			require.NoError(t, api.Create(t.Context(), theirs))
			o := startOperator(t, w)
			w.create(t, 1)
			message := w.awaitReason(t, dbv1alpha1.ConditionDegraded, dbv1alpha1.ReasonNotOurs)
			assert.Contains(t, message, name)
			assert.Contains(t, message, theirs.GetName())
			pause(2 * time.Second)
			after := theirs.DeepCopyObject().(client.Object)
			require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(theirs), after))
			assert.Equal(t, theirs.GetResourceVersion(), after.GetResourceVersion())
			if name == "PersistentVolumeClaim" {
				set := &appsv1.StatefulSet{}
				assert.True(t, client.IgnoreNotFound(api.Get(t.Context(), w.key("db-primary"), set)) == nil && set.UID == "", "nothing runs on their volume")
			}
			require.NoError(t, api.Delete(t.Context(), w.cluster(t)))
			w.awaitGone(t)
			require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(theirs), after))
			assert.Nil(t, after.GetDeletionTimestamp())
			for _, made := range o.Writes(time.Time{}) {
				assert.False(t, strings.HasSuffix(made.path, "/"+strings.ToLower(name)+"s/"+theirs.GetName()), made.String())
			}
		})
	}
}
