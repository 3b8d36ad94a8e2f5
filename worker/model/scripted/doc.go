// Package scripted is a model provider that plays a script instead of thinking: for tests, examples and a first run
// without a key.
//
// [Parse] reads a script, [New] plays it, [Demo] is the one that is built in. A script is YAML:
//
//	model: rehearsal            # what replies are signed with; default "scripted"
//	scenes:
//	  - match: weather          # plays when the first user message contains this
//	    tools: [read_file]      # and the request offers these tools; optional
//	    turns:
//	      - text: Let me look.
//	        chunk: 8            # stream in pieces of at most 8 bytes; default 32
//	        delay: 200ms        # before the first piece
//	        pause: 20ms         # between two pieces
//	        calls:
//	          - name: read_file
//	            arguments: {filePath: weather.txt}
//	          - name: read_file
//	            arguments: '{"filePath":'  # a string is handed on as it is, valid or not
//	      - text: "The file says: ${lastToolResult}"
//	        usage: {input: 12, output: 7}  # default: an estimate, one token for four bytes
//	  - format: step          # plays when this format is asked for; step is that of the JSON protocol
//	    turns: [{text: '{"type": "final", "content": "Sunny."}'}]
//	  - match: outage
//	    turns:
//	      - text: So far       # comes before the error
//	        error: {class: rate_limited, message: slow down, status: 429, retryAfter: 2s}
//	  - match: cut
//	    turns: [{text: Half a, truncate: true}]
//	  - repeat: true            # no match: every other message. repeat: begin again after the last turn
//	    turns: [{text: Hello.}]
//
// The scene is chosen by the first user message, in the order of the script; the turn by the number of assistant
// messages so far. A provider keeps no state, so the same request always gives the same reply, ids of tool calls
// included, in any process.
//
// In text, and in the strings of arguments that are a map, ${lastToolResult} stands for the text of the last tool
// result and ${task} for the first user message, each shortened to 16 KiB. Anything else in ${} stays as it is.
package scripted
