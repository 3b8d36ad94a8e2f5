module github.com/longshore-run/longshore

go 1.26.0
