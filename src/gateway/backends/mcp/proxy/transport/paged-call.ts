/** Calls an API, and joins the pages of its result. */
import { randomBytes } from 'node:crypto'
import { isObject } from '../../../../../ground/base/json-object.ts'
import type { OpenApiTool } from '../../openapi/operations.ts'
import { isJoinable, joinPages, type NextPage, nextPage, pageHint } from '../../openapi/pages.ts'
import { type ApiRequest, requestOf } from '../../openapi/request.ts'
import { resultOf } from '../../openapi/result.ts'
import { LateFlow } from '../target/late-flow.ts'
import type { TargetFailure } from '../target/target-failure.ts'
import type { Flow } from '../target/transport.ts'

interface ApiAnswer {
  readonly status: number
  readonly type: string
  /** The beginning of the body, up to the requested size. */
  readonly bytes: Uint8Array
  /** Length of the whole body. */
  readonly length: number
  /** The `Link` header. */
  readonly link: string | undefined
}

/** Receives the answer to one request, or why there is none. */
export interface AnswerListener {
  onAnswer(answer: ApiAnswer): void
  onFailure(failure: TargetFailure): void
}

type SendRequest = (
  request: ApiRequest,
  maxBytes: number,
  listener: AnswerListener,
) => Flow | Promise<Flow>

interface PagedCallOptions {
  readonly tool: OpenApiTool
  readonly maxPages: number
  /** Maximum bytes of the result. */
  readonly maxBytes: number
  readonly send: SendRequest
  /** Called with the CallToolResult. */
  readonly finish: (result: object) => void
  readonly onFailure: (failure: TargetFailure) => void
}

const boundary = (): string => randomBytes(16).toString('hex')

export class PagedCall extends LateFlow {
  readonly #options: PagedCallOptions
  readonly #pages: unknown[] = []
  #bytes = 0
  /** Arguments of the page that is being requested; undefined for the first page. */
  #asked: NextPage | undefined

  constructor(options: PagedCallOptions) {
    super()
    this.#options = options
  }

  /** Calls the tool. @throws ArgumentProblem */
  begin(args: unknown): Flow | Promise<Flow> {
    return this.#request(args, {
      onAnswer: (answer) => this.#onFirst(args, answer),
      onFailure: this.#options.onFailure,
    })
  }

  #request(args: unknown, listener: AnswerListener): Flow | Promise<Flow> {
    const { tool, maxBytes, send } = this.#options
    const sent = send(requestOf(tool.plan, args, boundary), maxBytes - this.#bytes, listener)
    const attach = (flow: Flow): this => {
      this.attach(flow)
      return this
    }
    return sent instanceof Promise ? sent.then(attach) : attach(sent)
  }

  #onFirst(args: unknown, answer: ApiAnswer): void {
    const { tool, maxPages, finish } = this.#options
    const body = bodyOf(answer)
    const next = nextPage(tool.plan, { link: answer.link, body })
    const isFollowed = maxPages > 1 && tool.plan.method === 'GET' && isJoinable([], body)
    if (next !== undefined && isFollowed) this.#onPage(args, body, answer.length, next)
    else finish(resultOf({ ...answer, pages: next && pageHint(next) }, tool.hasOutputSchema))
  }

  /** Adds a page, and requests the next one unless a limit is reached or the API names the same page again. */
  #onPage(args: unknown, body: unknown, length: number, next: NextPage | undefined): void {
    const { maxPages, maxBytes } = this.#options
    this.#pages.push(body)
    this.#bytes += length
    const isSame = JSON.stringify(next) === JSON.stringify(this.#asked)
    if (next === undefined || isSame) this.#finish(undefined)
    else if (this.#pages.length >= maxPages || this.#bytes >= maxBytes) this.#finish(next)
    else this.#follow(args, next)
  }

  #follow(before: unknown, asked: NextPage): void {
    const { plan } = this.#options.tool
    const { query, ...others } = isObject(before) ? before : {}
    const args = { ...others, query: { ...(isObject(query) && query), ...asked } }
    this.#asked = asked
    // If this page fails, the model gets the earlier pages, and can ask for this one again.
    const stop = () => this.#finish(asked)
    try {
      const sent = this.#request(args, {
        onAnswer: (answer) => {
          const body = bodyOf(answer)
          if (!isJoinable(this.#pages, body)) return stop()
          const next = nextPage(plan, { link: answer.link, body })
          this.#onPage(args, body, answer.length, next)
        },
        onFailure: stop,
      })
      if (sent instanceof Promise) sent.catch(stop)
    } catch {
      stop()
    }
  }

  #finish(next: NextPage | undefined): void {
    const { tool, finish } = this.#options
    const count = this.#pages.length
    const bytes = Buffer.from(JSON.stringify(joinPages(this.#pages)))
    const pages = next && pageHint(next, count)
    const response = { status: 200, type: 'application/json', bytes, length: bytes.length, pages }
    finish(resultOf(response, tool.hasOutputSchema))
  }
}

/** Returns the parsed body; undefined if it is incomplete, not JSON, or an error. */
function bodyOf({ status, type, bytes, length }: ApiAnswer): unknown {
  if (status < 200 || status >= 300 || length > bytes.length || !type.includes('json'))
    return undefined
  try {
    return JSON.parse(Buffer.from(bytes).toString())
  } catch {
    return undefined
  }
}
