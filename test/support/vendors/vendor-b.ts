/** A simulator of vendorB: vendorA's formats below paths that a version of the API decides. */

import { checkChat } from './completions-rules.ts'
import { checkResponses } from './responses-rules.ts'
import { type Refusal, startVendor, type Vendor, type VendorCall } from './vendor.ts'
import { completes, errorA } from './vendor-a.ts'

const dated = /^\d{4}-\d{2}-\d{2}(-preview)?$/
const tokenOfDirectory = /^Bearer eyJ[\w-]*\.[\w-]+\.[\w-]*$/

interface Place {
  readonly isDeployment: boolean
  readonly what: string
}

/** The resource that a path names; a text if it names none. */
function placeOf(path: string): Place | string {
  const { pathname, searchParams } = new URL(path, 'http://vendor')
  const version = searchParams.get('api-version')
  const v1 = /^\/openai\/v1\/(chat\/completions|responses|embeddings|realtime)$/.exec(pathname)?.[1]
  if (v1 !== undefined) {
    if (version !== null && version !== 'preview' && version !== 'v1') return `version ${version}`
    return { isDeployment: false, what: v1 }
  }
  if (version === null || !dated.test(version)) return `API version of ${path}`
  if (pathname === '/openai/responses') return { isDeployment: false, what: 'responses' }
  const named = /^\/openai\/deployments\/([^/]+)\/(chat\/completions|embeddings)$/.exec(pathname)
  if (named?.[2] === undefined) return `Resource not found: ${path}`
  return { isDeployment: true, what: named[2] }
}

function check({ method, path, headers, body, text }: VendorCall): Refusal {
  if (method !== 'POST') return `method ${method}`
  const place = placeOf(path)
  if (typeof place === 'string') return { status: 404, message: place }
  const key = headers['api-key']
  const isToken = tokenOfDirectory.test(headers.authorization ?? '')
  if (key === undefined && !isToken) return { status: 401, message: 'no key and no token' }
  if (key !== undefined && isToken) return { status: 401, message: 'a key beside a token' }
  if (headers['content-type'] !== 'application/json') return 'content-type'
  if (Number(headers['content-length']) !== Buffer.byteLength(text)) return 'content-length'
  if (!place.isDeployment && typeof body.model !== 'string') return 'model is required'
  if (place.what === 'responses') return checkResponses(body)
  return place.what === 'chat/completions' ? checkChat(body) : undefined
}

/** Streams begin with an event about the prompt that has no choices. */
export const promptFilter = {
  choices: [],
  created: 0,
  id: '',
  model: '',
  object: '',
  prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }],
}

/** As vendorA answers, at the paths of vendorB. */
export function completesB(...pieces: readonly string[]) {
  const answer = completes(...pieces)
  return (call: VendorCall, response: Parameters<typeof answer>[1]): void => {
    const what = /(chat\/completions|responses|embeddings)/.exec(call.path)?.[1] ?? ''
    if (what === 'chat/completions' && call.body.stream === true) {
      const write = response.write.bind(response)
      response.write = ((bytes: string, ...rest: never[]) => {
        response.write = write
        write(`data: ${JSON.stringify(promptFilter)}\n\n`)
        return write(bytes, ...rest)
      }) as typeof response.write
    }
    answer({ ...call, path: `/v1/${what}` }, response)
  }
}

export const startVendorB = (
  port?: number,
  tls?: { readonly certificate: string; readonly key: string },
): Promise<Vendor> => startVendor(check, completesB('Hello ', 'from B'), errorA, port, tls)
