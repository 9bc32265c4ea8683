/** A simulator of vendorE: models of three families, each below its publisher's path. */
import type { ServerResponse } from 'node:http'
import { checkChat } from './completions-rules.ts'
import { json, type Refusal, startVendor, type Vendor, type VendorCall } from './vendor.ts'
import { completes } from './vendor-a.ts'
import { checkMessages, fields, says } from './vendor-c.ts'
import { checkGenerate, errorD, generates, verbOf } from './vendor-d.ts'

const prefix = /^\/v1\/projects\/[a-z][a-z0-9-]*\/locations\/[a-z0-9-]+\/(.+)$/

/** The resource and its verb: what comes behind project and location. */
export const resourceOf = (path: string): string =>
  prefix.exec(new URL(path, 'http://vendor').pathname)?.[1] ?? ''

const rawFields = [...fields.filter((name) => name !== 'model'), 'anthropic_version']
const countFields = [...fields, 'anthropic_version']

function checkRaw(verb: string, model: string, body: Record<string, unknown>): Refusal {
  if (body.anthropic_version !== 'vertex-2023-10-16') return 'anthropic_version: Field required'
  if (JSON.stringify(body).includes('"scope"')) return 'cache_control.scope: Extra inputs'
  if (model === 'count-tokens') return checkMessages(body, false, countFields)
  if ((verb === 'streamRawPredict') !== (body.stream === true)) return `stream with ${verb}`
  return checkMessages({ model, ...body }, true, [...rawFields, 'model'])
}

function checkPredict({ instances, parameters = {} }: Record<string, unknown>): Refusal {
  if (!Array.isArray(instances) || instances.length === 0) return 'instances: required'
  const isText = instances.every((one: { content?: unknown }) => typeof one.content === 'string')
  if (!isText) return 'instances.content: required'
  const known = ['autoTruncate', 'outputDimensionality']
  const unknown = Object.keys(parameters as object).find((name) => !known.includes(name))
  return unknown && `parameters.${unknown}`
}

function check({ method, path, headers, body }: VendorCall): Refusal {
  if (method !== 'POST') return `method ${method}`
  if (!/^Bearer \S+$/.test(headers.authorization ?? '')) {
    return { status: 401, message: 'Request had invalid authentication credentials.' }
  }
  if (headers['x-goog-api-key'] !== undefined || headers['x-api-key'] !== undefined) return 'keys'
  if (headers['content-type']?.startsWith('application/json') !== true) return 'content-type'
  const resource = resourceOf(path)
  if (resource === 'endpoints/openapi/chat/completions') {
    return typeof body.model === 'string' ? checkChat(body) : 'model: required'
  }
  const published = /^publishers\/(google|anthropic)\/models\/([^/:]+):(\w+)$/.exec(resource)
  const [, publisher, model = '', verb = ''] = published ?? []
  if (publisher === 'anthropic' && /^(stream)?rawPredict$/i.test(verb)) {
    return checkRaw(verb, model, body)
  }
  if (publisher === 'google' && verb === 'predict') return checkPredict(body)
  if (publisher === 'google' && verbOf(path) !== undefined) return checkGenerate(body, path)
  return { status: 404, message: `no resource ${path}` }
}

function predictions({ instances }: Record<string, unknown>): object {
  const all = (instances as object[]).map((_, at) => ({
    embeddings: { values: [0.25, at], statistics: { token_count: 3, truncated: false } },
  }))
  return { predictions: all }
}

/** Answers with a text in the format of the model's family. */
export function speaks(...pieces: readonly string[]) {
  const [a, c, d] = [completes(...pieces), says(...pieces), generates(...pieces)]
  return (call: VendorCall, response: ServerResponse): void => {
    const resource = resourceOf(call.path)
    const model = /models\/([^:]+):/.exec(resource)?.[1] ?? ''
    if (resource.endsWith(':predict')) json(response, 200, predictions(call.body))
    else if (resource.startsWith('endpoints/'))
      a({ ...call, path: '/v1/chat/completions' }, response)
    else if (resource.startsWith('publishers/google/')) d(call, response)
    else {
      const path = model === 'count-tokens' ? '/v1/messages/count_tokens' : '/v1/messages'
      c({ ...call, path, body: { model, ...call.body } }, response)
    }
  }
}

export const startVendorE = (port?: number): Promise<Vendor> =>
  startVendor(check, speaks('Hello ', 'from E'), errorD, port)
