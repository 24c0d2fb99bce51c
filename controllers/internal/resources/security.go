package resources

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// podSecurity satisfies the restricted Pod Security standard. Where the platform
// assigns ids, they are unset unless the user sets them.
func podSecurity(w Workload) *corev1.PodSecurityContext {
	wanted := w.Cluster.Spec.SecurityContext
	context := &corev1.PodSecurityContext{
		RunAsNonRoot:        ptr.To(true),
		RunAsUser:           wanted.RunAsUser,
		RunAsGroup:          wanted.RunAsGroup,
		FSGroup:             wanted.FSGroup,
		FSGroupChangePolicy: wanted.FSGroupChangePolicy,
		SeccompProfile:      wanted.SeccompProfile,
		SELinuxOptions:      wanted.SELinuxOptions,
	}
	if !w.PlatformAssignsIDs {
		for _, id := range []**int64{&context.RunAsUser, &context.RunAsGroup, &context.FSGroup} {
			if *id == nil {
				*id = ptr.To[int64](defaultID)
			}
		}
	}
	if context.FSGroupChangePolicy == nil {
		// A walk over a large volume at each start takes minutes.
		context.FSGroupChangePolicy = ptr.To(corev1.FSGroupChangeOnRootMismatch)
	}
	if context.SeccompProfile == nil {
		context.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	return context
}

func containerSecurity() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		Privileged:               ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		RunAsNonRoot:             ptr.To(true),
	}
}
