FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /longshore . && mkdir -p /room/data/workspaces /room/data/cache /room/tmp && chmod 1777 /room/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /longshore /usr/local/bin/longshore
# Files of runs, and what can be made again, such as the run index; mount volumes there, they stay on this machine.
COPY --from=build --chown=65532:65532 /room /
USER 65532:65532
WORKDIR /data
# Workers need no authentication; a dispatcher on this address does.
ENV LONGSHORE_HTTP_ADDR=0.0.0.0:8420 LONGSHORE_AUTH=on LONGSHORE_WORKSPACES=/data/workspaces XDG_CACHE_HOME=/data/cache SQLITE_TMPDIR=/data/cache
EXPOSE 8420
ENTRYPOINT ["/usr/local/bin/longshore"]
CMD ["worker"]
