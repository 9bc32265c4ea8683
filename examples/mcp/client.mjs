// Connects twice with the official client: without a team, and as the sales team.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

/** Connects with the headers, calls `use`, and ends the session. */
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

/** Prints what each client may use. */
export async function drive(url, print) {
  await as(url, {}, async (client) => {
    print(`without a team: ${(await namesOf(client)).join(', ')}`)
    print(`notes_search: ${await call(client, 'notes_search', { text: 'invoice' })}`)
    print(`orders_cancel: ${await call(client, 'orders_cancel', { id: 'o-2' })}`)
  })
  await as(url, { 'x-team': 'sales' }, async (client) => {
    print(`sales team: ${(await namesOf(client)).join(', ')}`)
    print(`orders_cancel: ${await call(client, 'orders_cancel', { id: 'o-2' })}`)
    const { resources } = await client.listResources()
    print(`resources of the sales team: ${resources.map(({ uri }) => uri).join(', ')}`)
  })
}

if (process.argv[1] === import.meta.filename) {
  await drive(new URL(process.argv[2]), console.log)
}
