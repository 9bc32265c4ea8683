// Mock vendors of language models: port 9111 speaks chat completions (vendorA), port 9112 messages
// (vendorC). Each repeats what it received, so that you can see what the gateway sent.
import { createServer } from 'node:http'

const textOf = (content) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text = '' }) => text).join(' ')

const answerTo = ({ messages = [] }) =>
  `You said "${textOf(messages.at(-1)?.content)}". Write to support@example.com for more.`

/** About what a tokenizer would say: four characters make a token. */
const tokens = (text) => Math.ceil(text.length / 4)

function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

function vendorA(body, response) {
  const { model, stream } = body
  if (model === 'out-of-capacity') {
    const error = { message: 'out of capacity', type: 'rate_limit_error', param: null, code: null }
    json(response, 429, { error }, { 'retry-after': '30' })
    return
  }
  const text = answerTo(body)
  const prompt = tokens(JSON.stringify(body.messages ?? ''))
  const completion = tokens(text)
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  }
  const base = { id: 'chatcmpl-mock', created: Math.floor(Date.now() / 1000), model }
  if (stream !== true) {
    const message = { role: 'assistant', content: text }
    const choices = [{ index: 0, message, finish_reason: 'stop' }]
    json(response, 200, { ...base, object: 'chat.completion', choices, usage })
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const chunk = (fields) =>
    response.write(
      `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', ...fields })}\n\n`,
    )
  const delta = (fields, finish = null) =>
    chunk({ choices: [{ index: 0, delta: fields, finish_reason: finish }] })
  delta({ role: 'assistant', content: '' })
  // Splits the answer in the middle of the address, which is the hardest case for a mask.
  for (const piece of text.match(/.{1,7}/gs) ?? []) delta({ content: piece })
  delta({}, 'stop')
  if (body.stream_options?.include_usage) chunk({ choices: [], usage })
  response.end('data: [DONE]\n\n')
}

function vendorC(body, response) {
  const text = answerTo(body)
  json(response, 200, {
    id: 'msg_mock',
    type: 'message',
    role: 'assistant',
    model: body.model,
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: tokens(JSON.stringify(body.messages)), output_tokens: tokens(text) },
  })
}

const serve = { vendorA: ['/v1/chat/completions', vendorA], vendorC: ['/v1/messages', vendorC] }

/** Starts one vendor on the loopback address; resolves with its server once it listens. */
export function startVendor(name, port) {
  const [path, answer] = serve[name]
  const server = createServer((request, response) => {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const { url, method } = request
      if (method === 'POST' && url === path) {
        answer(JSON.parse(Buffer.concat(chunks).toString()), response)
      } else json(response, 404, { error: { message: `no ${method} ${url}` } })
    })
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

export const vendors = [
  ['vendorA', 9111],
  ['vendorC', 9112],
]

if (process.argv[1] === import.meta.filename) {
  for (const [name, port] of vendors) await startVendor(name, port)
  console.log('ready')
}
