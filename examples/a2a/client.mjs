// Talks to the agents and the tools of the gateway with the official clients.
import { TaskState } from '@a2a-js/sdk'
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const legacyCompat = { enabled: true }
const agents = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ legacyCompat })],
  cardResolver: new DefaultAgentCardResolver({ legacyCompat }),
})

const message = (text) => ({
  tenant: '',
  message: {
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId: '',
    role: 1,
    parts: [{ content: { $case: 'text', value: text }, filename: '', mediaType: 'text/plain' }],
    extensions: [],
    referenceTaskIds: [],
  },
})
const textOf = ({ status }) => status.message.parts[0].content.value
const nameOf = (state) => TaskState[state].replace('TASK_STATE_', '').toLowerCase()

/** Prints what the gateway at `base` serves, such as `http://127.0.0.1:8080`. */
export async function drive(base, print) {
  // Without this header, agents with both versions send a card of version 0.3.
  const headers = { 'a2a-version': '1.0' }
  const cardAt = (name) => fetch(`${base}/agents/${name}/.well-known/agent-card.json`, { headers })
  const card = await (await cardAt('weather')).json()
  for (const { url, protocolVersion } of card.supportedInterfaces) {
    const where = url.startsWith(`${base}/`) ? 'gateway' : 'agent'
    print(`weather ${protocolVersion}: ${new URL(url).pathname} of the ${where}`)
  }
  const weather = await agents.createFromUrl(`${base}/agents/weather/`)
  const task = await weather.sendMessage(message('Vienna'))
  print(`weather, one answer: ${textOf(task)}`)
  const states = []
  for await (const { payload } of weather.sendMessageStream(message('Oslo'))) {
    states.push(nameOf(payload.value.status.state))
  }
  print(`weather, a stream: ${states.join(', ')}`)
  const canceled = await weather.cancelTask({ id: task.id, tenant: '' }).catch((error) => error)
  print(`weather, cancel a task: ${canceled.message}`)

  const translator = await agents.createFromUrl(`${base}/agents/translator/`)
  print(`translator 0.3, one answer: ${textOf(await translator.sendMessage(message('lamp')))}`)
  const refused = await cardAt('impostor')
  print(`impostor: ${refused.status} ${(await refused.text()).trim()}`)

  const tools = new Client({ name: 'example', version: '1.0.0' })
  await tools.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`)))
  const listed = await tools.listTools()
  print(`tools: ${listed.tools.map(({ name }) => name).join(', ')}`)
  await tools.close()
}

if (process.argv[1] === import.meta.filename) {
  await drive(process.argv[2] ?? 'http://127.0.0.1:8080', console.log)
}
