FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ENV CGO_ENABLED=0
# The sum of longshore-sandbox is linked into longshore, which starts no other.
RUN go build -trimpath -buildvcs=false -ldflags "-s -w" -o /longshore-sandbox ./sandbox/process/longshore-sandbox
RUN go build -trimpath -ldflags "-s -w -X main.version=${VERSION} -X github.com/longshore-run/longshore/sandbox/process.starterSum=$(sha256sum /longshore-sandbox | cut -d ' ' -f 1)" -o /longshore . && mkdir -p /room/data/workspaces /room/data/cache /room/tmp && chmod 1777 /room/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /longshore /longshore-sandbox /usr/local/bin/
# Files of runs, and what can be made again, such as the run index; mount volumes there, they stay on this machine.
COPY --from=build --chown=65532:65532 /room /
USER 65532:65532
WORKDIR /data
# Workers need no authentication; a dispatcher on this address does.
ENV LONGSHORE_HTTP_ADDR=0.0.0.0:8420 LONGSHORE_AUTH=on LONGSHORE_WORKSPACES=/data/workspaces XDG_CACHE_HOME=/data/cache SQLITE_TMPDIR=/data/cache
EXPOSE 8420
ENTRYPOINT ["/usr/local/bin/longshore"]
CMD ["worker"]
