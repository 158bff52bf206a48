# A static binary in an empty image, with the authorities that rediss:// trusts: no shell, no libc, not root.
FROM golang:1.26 AS build
WORKDIR /data
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w" -o /celld .
WORKDIR /links/bin
RUN ln -s /celld ratelimit

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /celld /celld
# Manifests of envoyproxy/ratelimit name this command.
COPY --from=build /links/ /
# A volume that is new gets the owner that the folder has here.
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
EXPOSE 6379
# The binary asks the server at the addresses that process 1's flags and the environment name. A server that loads is healthy.
HEALTHCHECK --interval=10s --timeout=4s --start-period=2s CMD ["/celld", "ping"]
ENTRYPOINT ["/celld"]
