/** Sessions of the official MCP SDK with one server, and with two behind one address. */
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { connectClient } from '../../support/mcp-client.ts'
import { tagsIn } from '../../support/tagged-upstream.ts'
import { entranceOf, type Traffic } from './context.ts'

export const tools: Traffic = async (context) => {
  const { ledger, random } = context
  const { port, ways } = entranceOf(context)
  const base = random.pick(['tools', 'joined'])
  const names = base === 'tools' ? ['echo'] : ['t0_echo', 't1_echo']
  const tag = ledger.nextTag()
  await ledger.exchange(`mcp ${base}`, ways, tag, async () => {
    const client = await connectClient(port, `/${base}`)
    try {
      for (let call = 0; call < 3; call++) {
        const text = `${tag}${call}`
        const name = random.pick(names)
        const result = await client.callTool({ name, arguments: { text } })
        const received = JSON.stringify(result)
        const foreign = tagsIn(received).filter((found) => found !== tag)
        if (foreign.length > 0 || !received.includes(JSON.stringify(text))) {
          const what = `${name} answers ${received} to ${text}`
          return { kind: 'wrong', invariant: 'isolation', text: what, received }
        }
      }
      return undefined
    } finally {
      const { transport } = client as { transport?: StreamableHTTPClientTransport }
      await transport?.terminateSession().catch(() => {})
      await client.close()
    }
  })
}
