# The operator's image: one static program and nothing else, so there is nothing to patch and no shell to misuse.
# Build the program first (`make build`), or let `make images` do both.
#
# It needs no writable file system and no entry in a passwd file, and runs under any user id: an init container of every
# PostgreSQL pod runs it too, under the pod's user, to copy the program into the pod (`instance install DIR`).
FROM scratch

ARG TARGETARCH
ARG VERSION=dev
ARG REVISION=

LABEL org.opencontainers.image.title="postgres-operator" \
      org.opencontainers.image.description="Kubernetes operator for PostgreSQL clusters, and the instance manager in their pods" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="https://github.com/my-org/postgres-operator" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

# Readable and executable for all, whatever umask it was built under.
COPY --chmod=0555 build/${TARGETARCH}/postgres-operator /postgres-operator

# Numeric, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/postgres-operator"]
