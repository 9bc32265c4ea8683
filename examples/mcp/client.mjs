// Two callers with the official client: one of nobody's team, one of the sales team.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

/** Connects as somebody, does what `use` does, and ends the session. */
async function as(url, headers, use) {
  const client = new Client({ name: 'example', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
  await client.connect(transport)
  try {
    return await use(client)
  } finally {
    await transport.terminateSession()
    await client.close()
  }
}

const namesOf = async (client) => (await client.listTools()).tools.map(({ name }) => name)

async function call(client, name, args) {
  try {
    const { content } = await client.callTool({ name, arguments: args })
    return content.map(({ text }) => text).join('\n')
  } catch (error) {
    return `refused: ${error.message}`
  }
}

/** Everything that the example shows, line by line. */
export async function drive(url, print) {
  await as(url, {}, async (client) => {
    print(`anybody sees ${(await namesOf(client)).join(', ')}`)
    print(`notes_search: ${await call(client, 'notes_search', { text: 'invoice' })}`)
    print(`orders_cancel: ${await call(client, 'orders_cancel', { id: 'o-2' })}`)
  })
  await as(url, { 'x-team': 'sales' }, async (client) => {
    print(`sales sees ${(await namesOf(client)).join(', ')}`)
    print(`orders_cancel: ${await call(client, 'orders_cancel', { id: 'o-2' })}`)
    const { resources } = await client.listResources()
    print(`sales reads ${resources.map(({ uri }) => uri).join(', ')}`)
  })
}

if (process.argv[1] === import.meta.filename) {
  await drive(new URL(process.argv[2]), console.log)
}
