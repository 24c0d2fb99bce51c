package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dbv1alpha1 "github.com/my-org/postgres-operator/api/v1alpha1"
	"github.com/my-org/postgres-operator/internal/naming"

	"github.com/my-org/postgres-operator/test/bench/spread"
)

func TestMedian(t *testing.T) {
	assert.Equal(t, int64(3), spread.Median([]int64{9, 3, 1}))
	assert.Equal(t, int64(2), spread.Median([]int64{4, 1, 3, 1}))
}

func TestMilestones(t *testing.T) {
	began := time.Now()
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	m := &measurement{began: began, times: map[milestone]time.Duration{}}
	pods := map[string]*corev1.Pod{}
	pod := func(instance string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{naming.LabelCluster: "db", naming.LabelInstance: instance}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	m.observe("db", 3, pod("db-primary", corev1.ConditionFalse), pods, at(1))
	m.observe("db", 3, pod("db-primary", corev1.ConditionTrue), pods, at(2))
	m.observe("db", 3, pod("db-replica-1", corev1.ConditionTrue), pods, at(3))
	assert.NotContains(t, m.times, replicasReady, "one of two")
	m.observe("db", 3, pod("db-replica-2", corev1.ConditionTrue), pods, at(4))
	ready := &dbv1alpha1.PostgresCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	ready.Status.ReadyInstances = 3
	ready.Status.Conditions = []metav1.Condition{{Type: dbv1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	m.observe("db", 3, ready, pods, at(5))
	m.observe("db", 3, ready, pods, at(6))
	assert.Equal(t, map[milestone]time.Duration{podCreated: time.Second, primaryReady: 2 * time.Second,
		replicasReady: 4 * time.Second, allReady: 5 * time.Second}, m.times)
}

func TestLogOfAReplica(t *testing.T) {
	began := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	m := &measurement{began: began, times: map[milestone]time.Duration{}}
	m.readLog(`no JSON
{"time":"2026-12-01T10:00:02Z","msg":"pg_basebackup: initiating base backup","program":"pg_basebackup"}
{"time":"2026-12-01T10:00:04Z","msg":"pg_basebackup: base backup completed","program":"pg_basebackup"}
{"time":"2026-12-01T10:00:05Z","msg":"starting PostgreSQL 15.20","program":"postgres"}
`)
	assert.Equal(t, map[milestone]time.Duration{cloneStarted: 2 * time.Second, cloneFinished: 4 * time.Second}, m.times)
	m.readLog(`{"time":"2026-12-01T10:00:01Z","msg":"starting PostgreSQL 15.20","program":"postgres"}`)
	assert.Equal(t, time.Second, m.times[initdbDone])
}

func TestMemory(t *testing.T) {
	resident, err := processMemory("Name:\tmanager\nVmRSS:\t   18432 kB\n", "VmRSS:")
	require.NoError(t, err)
	assert.Equal(t, int64(18432<<10), resident)
	_, err = processMemory("Name:\tmanager\n", "VmRSS:")
	require.ErrorContains(t, err, "VmRSS")
	used, err := podMemory([]byte(`{"pods":[{"podRef":{"name":"a"},"containers":[{"memory":{"rssBytes":5}}]},
		{"podRef":{"name":"b"},"containers":[{"memory":{"rssBytes":7,"workingSetBytes":9}}]}]}`), "b")
	require.NoError(t, err)
	assert.Equal(t, memory{private: 7, working: 9}, used)
}

func TestTable(t *testing.T) {
	text := results{operator: memory{private: 20e6, working: 30e6}, runs: []*measurement{
		{times: map[milestone]time.Duration{firstReady: 4 * time.Second, allReady: 9 * time.Second}, managers: []int64{20e6}},
		{times: map[milestone]time.Duration{firstReady: 6 * time.Second, allReady: 11 * time.Second}, managers: []int64{22e6}},
	}}.String()
	for _, want := range []string{"5.0 s (4.0 s to 6.0 s)", "10.0 s (9.0 s to 11.0 s)", "30.0 MB", "21.0 MB (20.0 MB to 22.0 MB)", "63 s"} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, string(cloneFinished), "what was not seen is not told")
}
