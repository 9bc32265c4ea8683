// Mock vendors of language models. Each listens on a port of its own, knows the formats of all vendors by their paths
// (formats.mjs), whole and streamed, and repeats what it received, so that you can see what the gateway sent.
// The model `out-of-capacity` is always refused with 429.
import { createServer } from 'node:http'
import { answerTo, formats } from './formats.mjs'

const models = ['gpt-4o-mini', 'claude-sonnet-5-5', 'gemini-2.5-flash', 'out-of-capacity']
const model = (id) => ({ id, object: 'model', created: 0, owned_by: 'mock' })

function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(body))
}

/** An error that the SDKs of all vendors can read. */
function fail(response, status, message, headers) {
  const type = status === 429 ? 'rate_limit_error' : 'invalid_request_error'
  const error = { message, type, param: null, code: status }
  json(response, status, { type: 'error', error, message }, headers)
}

function answer(format, call, response) {
  if (call.model === 'out-of-capacity') {
    fail(response, 429, 'out of capacity', { 'retry-after': '30' })
    return
  }
  if (format.isStream?.(call) !== true) {
    json(response, 200, format.answer(call))
    return
  }
  response.writeHead(200, { 'content-type': format.streamType ?? 'text/event-stream' })
  for (const one of format.events(call)) response.write(one)
  response.end()
}

function get(path, response) {
  const [, id] = /\/models(?:\/([^/]+))?$/.exec(path) ?? []
  if (id !== undefined) json(response, 200, model(decodeURIComponent(id)))
  else if (path.endsWith('/models'))
    json(response, 200, { object: 'list', data: models.map(model) })
  else fail(response, 404, `no GET ${path}`)
}

function serve({ method, url }, text, response) {
  const { pathname, searchParams: query } = new URL(url, 'http://mock')
  if (method === 'GET') return get(pathname, response)
  const format = Object.values(formats).find(({ path }) => path.test(pathname))
  if (method !== 'POST' || format === undefined) {
    return fail(response, 404, `no ${method} ${pathname}`)
  }
  const named = format.path.exec(pathname)?.groups ?? {}
  try {
    const body = JSON.parse(text)
    const name = named.model === undefined ? body.model : decodeURIComponent(named.model)
    answer(format, { ...named, model: name, body, query, text: answerTo(body) }, response)
  } catch (error) {
    fail(response, 400, `the body is not one of ${pathname}: ${error.message}`)
  }
}

/** Starts a vendor on the loopback address; resolves with its server when it listens. */
export function startVendor(port) {
  const server = createServer((request, response) => {
    const chunks = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => serve(request, Buffer.concat(chunks).toString(), response))
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

/** The examples have two vendors, so that one can fail. */
export const vendorPorts = [9111, 9112]

if (process.argv[1] === import.meta.filename) {
  for (const port of vendorPorts) await startVendor(port)
  console.log('ready')
}
