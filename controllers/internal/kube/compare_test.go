package kube

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestHoldsIgnoresWhatTheServerAdds(t *testing.T) {
	wanted := &corev1.Service{Spec: corev1.ServiceSpec{
		Selector: map[string]string{"cluster": "db"},
		Ports:    []corev1.ServicePort{{Name: "postgres", Port: 5432}},
	}}
	live := wanted.DeepCopy()
	live.Spec.ClusterIP = "10.0.0.1"
	live.Spec.Ports[0].Protocol = corev1.ProtocolTCP
	live.ResourceVersion = "12"
	live.Labels = map[string]string{"added": "by others"}
	same, err := Holds(live, wanted)
	require.NoError(t, err)
	assert.True(t, same)
}

func TestHoldsSeesWhatOthersChange(t *testing.T) {
	wanted := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "1", Name: "db", Controller: ptr.To(true)}}},
		Spec: corev1.ServiceSpec{Selector: map[string]string{"cluster": "db", "role": "primary"},
			Ports: []corev1.ServicePort{{Name: "postgres", Port: 5432}}},
	}
	for name, change := range map[string]func(*corev1.Service){
		"a selector that is changed": func(s *corev1.Service) { s.Spec.Selector["role"] = "replica" },
		"a selector that is dropped": func(s *corev1.Service) { delete(s.Spec.Selector, "role") },
		"a selector with one more":   func(s *corev1.Service) { s.Spec.Selector["added"] = "by others" },
		"a port":                     func(s *corev1.Service) { s.Spec.Ports[0].Port = 1 },
		"a port that is dropped":     func(s *corev1.Service) { s.Spec.Ports = nil },
		"the owner":                  func(s *corev1.Service) { s.OwnerReferences = nil },
	} {
		t.Run(name, func(t *testing.T) {
			live := wanted.DeepCopy()
			change(live)
			same, err := Holds(live, wanted)
			require.NoError(t, err)
			assert.False(t, same)
		})
	}
}

func TestHoldsComparesMeaningNotSpelling(t *testing.T) {
	claim := func(size string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}}}
	}
	same, err := Holds(claim("1Gi"), claim("1024Mi"))
	require.NoError(t, err)
	assert.True(t, same)
	one, err := Hash(claim("1Gi"))
	require.NoError(t, err)
	other, err := Hash(claim("1024Mi"))
	require.NoError(t, err)
	assert.Equal(t, one, other)
}

func TestHashSeesAFieldGivenUp(t *testing.T) {
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}}
	before, err := Hash(template)
	require.NoError(t, err)
	template.Spec.NodeSelector = nil
	after, err := Hash(template)
	require.NoError(t, err)
	assert.NotEqual(t, before, after)
}

func TestStripZeroKeepsWhatMeansSomething(t *testing.T) {
	fields := map[string]any{
		"status":   map[string]any{"replicas": nil},
		"metadata": map[string]any{"creationTimestamp": nil},
		"volumes":  []any{map[string]any{"name": "run", "emptyDir": map[string]any{}}},
	}
	stripZero(fields)
	assert.Equal(t, map[string]any{"volumes": []any{map[string]any{"name": "run", "emptyDir": map[string]any{}}}}, fields)
}
