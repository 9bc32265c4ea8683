// An MCP server over standard input and output that does as little as possible.
const called = JSON.stringify({ content: [{ type: 'text', text: 'x'.repeat(200) }] })
const info =
  '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}'
let rest = ''
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  for (const line of lines) {
    const id = /"id":("[^"]*"|[^,}]+)/.exec(line)?.[1]
    if (id === undefined) continue
    const result = line.includes('"initialize"') ? info : called
    process.stdout.write(`{"jsonrpc":"2.0","id":${id},"result":${result}}\n`)
  }
})
