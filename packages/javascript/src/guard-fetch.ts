/** A `fetch` that guards calls to language models. */
import {
  defaultLimit,
  type Format,
  type Guard,
  Guards,
  GuardsError,
  type Kind,
  type Rewriter,
} from './guards.ts'
import { Mask } from './masks.ts'

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

export interface GuardFetchOptions {
  /** Guards of the texts that are sent. */
  readonly request?: readonly Guard[]
  /** Guards of the texts that are received. */
  readonly response?: readonly Guard[]
  /** Paths that may be called without guards. */
  readonly unguardedPaths?: readonly string[]
  /** Ends of the paths of POST requests that the guards read, and the format there. */
  readonly formats?: Readonly<Record<string, Format>>
  /** The function that sends requests; `fetch` of the host if omitted. */
  readonly fetch?: Fetch
}

/** Ends of the paths whose messages the guards read, and the format there. */
export const defaultFormats: Readonly<Record<string, Format>> = {
  '/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/responses': 'Responses',
  '/embeddings': 'Embeddings',
}

/** Larger errors of a vendor are not shown. */
const maxErrorBytes = 1024 * 1024

const rejected = 'The request was rejected by a guard.'
const rejectedAnswer = 'The answer was rejected by a guard.'
const unreadable = 'The answer cannot be judged by the guards.'
const hidden = 'The vendor answered with an error that the guards do not let pass.'

/**
 * Returns a `fetch` that masks the texts of requests and of answers, whole or streamed, and those in the errors of a
 * vendor. A message that cannot be judged, or that has another format, does not pass: the promise is rejected with a GuardsError.
 */
export function guardFetch(options: GuardFetchOptions = {}): Fetch {
  const guarding = new Guarding(options)
  const send: Fetch = options.fetch ?? ((input, init) => fetch(input, init))
  return async (input, init) => {
    const format = guarding.formatOf(targetOf(input, init))
    if (format === undefined) return send(input, init)
    const request = new Request(input, withDuplex(init))
    const sent = guarding.masked(new Uint8Array(await request.clone().arrayBuffer()), format)
    if (sent instanceof Response) return sent
    const headers = new Headers(request.headers)
    // The length of the body has changed.
    headers.delete('content-length')
    const changes = { method: request.method, headers, body: sent }
    const { duplex: _, ...rest } = withDuplex(init) ?? {}
    const target = input instanceof Request ? new Request(request, changes) : request.url
    return guarding.answer(await send(target, { ...rest, ...changes }), format)
  }
}

/** The method and the URL as `fetch` normalizes them. The body stays unread. */
function targetOf(input: string | URL | Request, init: RequestInit | undefined): Request {
  const { url, method } = input instanceof Request ? input : new Request(input)
  return new Request(url, { method: init?.method ?? method })
}

/** Node wants `duplex` for requests whose body is a stream. TypeScript does not know it. */
function withDuplex(
  init: RequestInit | undefined,
): (RequestInit & { duplex?: 'half' }) | undefined {
  return init?.body instanceof ReadableStream ? { ...init, duplex: 'half' } : init
}

class Guarding {
  readonly #request: Guards
  readonly #response: Guards
  readonly #errorMasks: readonly { readonly mask: Mask; readonly rejects: boolean }[]
  readonly #unguarded: ReadonlySet<string>
  readonly #formats: Readonly<Record<string, Format>>

  constructor({ request = [], response = [], unguardedPaths = [], formats }: GuardFetchOptions) {
    this.#request = new Guards(request)
    this.#response = new Guards(response)
    this.#errorMasks = response.map(({ rules, rejects = false }) => ({
      mask: new Mask(rules),
      rejects,
    }))
    this.#unguarded = new Set(unguardedPaths)
    this.#formats = formats ?? defaultFormats
  }

  /** The format of a request; undefined if its path is not guarded. */
  formatOf({ method, url }: Request): Format | undefined {
    const { pathname } = new URL(url)
    if (this.#unguarded.has(pathname)) return undefined
    const found = Object.entries(this.#formats).find(([end]) => pathname.endsWith(end))
    if (method === 'POST' && found !== undefined) return found[1]
    throw new GuardsError(
      `${method} ${pathname} is not in a format that the guards read; ` +
        'add the path to unguardedPaths if it may pass',
    )
  }

  /** The body of a request with masked texts, or the response of a guard that rejects it. */
  masked(body: Uint8Array, format: Format): Uint8Array<ArrayBuffer> | Response {
    const rewriter = this.#request.rewriter(format, 'request')
    const out = rewriter.end(body)
    const isRejected = rewriter.details.rejectedBy !== undefined
    const refused = isRejected ? refusal(403, rewriter.fail(403, rejected)) : undefined
    rewriter[Symbol.dispose]()
    return refused ?? out
  }

  /** The response with masked texts, or with an error in their place. */
  async answer(response: Response, format: Format): Promise<Response> {
    try {
      const kind = kindOf(response)
      if (kind === 'stream') return this.#stream(response, format)
      const body = await bodyOf(response, kind === undefined ? maxErrorBytes : defaultLimit)
      if (kind === undefined) return responseLike(response, this.#error(body))
      const rewriter = this.#response.rewriter(format, 'answer')
      const { out, status } = step(rewriter, body, true)
      rewriter[Symbol.dispose]()
      return status === 0 ? responseLike(response, out) : refusal(status, out)
    } catch (error) {
      if (response.body?.locked === false) await response.body.cancel()
      throw error
    }
  }

  #stream(response: Response, format: Format): Response {
    const rewriter = this.#response.rewriter(format, 'stream')
    const masking = new TransformStream<Uint8Array, Uint8Array>({
      transform: (piece, controller) => {
        const { out, status } = step(rewriter, piece, false)
        if (out.length > 0) controller.enqueue(out)
        if (status === 0) return
        rewriter[Symbol.dispose]()
        controller.terminate()
      },
      flush: (controller) => {
        const { out } = step(rewriter, new Uint8Array(), true)
        if (out.length > 0) controller.enqueue(out)
        rewriter[Symbol.dispose]()
      },
    })
    return responseLike(response, response.body?.pipeThrough(masking) ?? null)
  }

  /** An error of the vendor, which may repeat texts of the request. */
  #error(body: Uint8Array): string {
    const text = new TextDecoder().decode(body)
    try {
      return JSON.stringify(this.#maskValue(JSON.parse(text)))
    } catch (error) {
      if (error instanceof SyntaxError) return this.#maskText(text)
      // Nested too deep.
      return JSON.stringify({ error: { message: hidden } })
    }
  }

  #maskValue(value: unknown): unknown {
    if (typeof value === 'string') return this.#maskText(value)
    if (Array.isArray(value)) return value.map((each) => this.#maskValue(each))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value)
    return Object.fromEntries(
      entries.map(([name, each]) => [this.#maskText(name), this.#maskValue(each)]),
    )
  }

  #maskText(text: string): string {
    let masked = text
    for (const { mask, rejects } of this.#errorMasks) {
      if (rejects && mask.isMatch(masked)) return hidden
      masked = mask.apply(masked)
    }
    return masked
  }
}

/** The kind of an answer; undefined for errors of the vendor. */
function kindOf({ status, headers }: Response): Kind | undefined {
  if (status >= 300) return undefined
  const media = (headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase()
  if (media === 'text/event-stream') return 'stream'
  if (media === 'application/json') return 'answer'
  throw new GuardsError(`the answer has the type '${media}', which the guards cannot read`)
}

/** The bytes that can be forwarded, and the status of the error that ends the message, or 0. */
function step(rewriter: Rewriter, piece: Uint8Array, isEnd: boolean) {
  let out: Uint8Array<ArrayBuffer>
  try {
    out = isEnd ? rewriter.end(piece) : rewriter.push(piece)
  } catch {
    return { out: rewriter.fail(502, unreadable), status: 502 }
  }
  if (rewriter.details.rejectedBy === undefined) return { out, status: 0 }
  return { out: rewriter.fail(403, rejectedAnswer), status: 403 }
}

async function bodyOf(response: Response, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = []
  let size = 0
  const reader = response.body?.getReader()
  for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
    size += next.value.length
    if (size > limit) {
      await reader?.cancel()
      throw new GuardsError('the answer is too large to be judged')
    }
    pieces.push(next.value)
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer())
}

type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null

function responseLike({ status, statusText, headers }: Response, body: Body): Response {
  const kept = new Headers(headers)
  // They describe the bytes that the vendor has sent.
  for (const name of ['content-length', 'content-encoding', 'transfer-encoding']) kept.delete(name)
  return new Response(body === '' ? null : body, { status, statusText, headers: kept })
}

const refusal = (status: number, body: Uint8Array<ArrayBuffer>): Response =>
  new Response(body, { status, headers: { 'content-type': 'application/json' } })
