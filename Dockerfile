FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /longshore .

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /longshore /usr/local/bin/longshore
# Files of runs; mount a volume here, they stay on this machine.
WORKDIR /home/nonroot
ENV LONGSHORE_HTTP_ADDR=0.0.0.0:8420 LONGSHORE_WORKSPACES=/home/nonroot/workspaces
EXPOSE 8420
ENTRYPOINT ["/usr/local/bin/longshore"]
CMD ["worker"]
