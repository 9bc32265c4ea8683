// The agents of this example, made with the official SDK: "weather" has versions 1.0 and 0.3 and a
// signed card, "translator" has version 0.3 only and no signature. A third server has the keys.
import { createServer } from 'node:http'
import { generateAgentCardSignature, TaskState } from '@a2a-js/sdk'
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler } from '@a2a-js/sdk/server/express'
import express from 'express'
import { exportJWK, generateKeyPair } from 'jose'

const legacyCompat = { enabled: true }

/** Returns an executor that answers each message with a task, which works and then completes with a text. */
const executor = (answer) => ({
  async execute({ taskId, contextId, userMessage }, bus) {
    const update = (state, text) => {
      const parts = [{ content: { $case: 'text', value: text }, mediaType: 'text/plain' }]
      const message = { messageId: `${taskId}-${state}`, taskId, contextId, role: 2, parts }
      const status = { state, message }
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status }))
    }
    const status = { state: TaskState.TASK_STATE_SUBMITTED }
    const history = [userMessage]
    bus.publish(AgentEvent.task({ id: taskId, contextId, status, artifacts: [], history }))
    update(TaskState.TASK_STATE_WORKING, 'One moment.')
    update(TaskState.TASK_STATE_COMPLETED, answer(userMessage.parts[0].content.value))
    bus.finished()
  },
  async cancelTask() {},
})

const cardOf = (name, port, versions) => ({
  name,
  description: `The ${name} agent.`,
  version: '1.0.0',
  supportedInterfaces: versions.map((protocolVersion) => ({
    url: `http://127.0.0.1:${port}/rpc`,
    protocolBinding: 'JSONRPC',
    protocolVersion,
    tenant: '',
  })),
  capabilities: { streaming: true, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
})

const listen = (handler, port) =>
  new Promise((resolve, reject) => {
    const server = createServer(handler)
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })

/** Serves an agent with its card; `sign` adds a signature to the card. */
function serve(card, port, answer, sign = (unsigned) => unsigned) {
  const app = express()
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor(answer))
  const agentCardProvider = () => sign(structuredClone(card))
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider, legacyCompat }))
  const userBuilder = async () => ({ isAuthenticated: false, userName: '' })
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder, legacyCompat }))
  return listen(app, port)
}

/** Starts both agents and the server of the keys, at these ports. */
export async function startAgents({ weather = 8111, translator = 8112, keys = 8113 } = {}) {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true })
  const named = { alg: 'ES256', kid: 'weather-1' }
  const header = { ...named, typ: 'JOSE' }
  const sign = generateAgentCardSignature({ ...(await exportJWK(privateKey)), ...named }, header)
  const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), ...named }] })
  return Promise.all([
    serve(
      cardOf('weather', weather, ['1.0', '0.3']),
      weather,
      (city) => `It is sunny in ${city}.`,
      sign,
    ),
    serve(cardOf('translator', translator, ['0.3']), translator, (text) => `French for "${text}".`),
    listen((_, response) => {
      response.setHeader('content-type', 'application/json').end(jwks)
    }, keys),
  ])
}

if (process.argv[1] === import.meta.filename) {
  await startAgents()
  console.log('ready')
}
