/**
 * Serves the webhook `/validate` over TLS, only to clients with a certificate or the token if one is configured. It
 * fails open: an object that cannot be judged in time is admitted with a
 * warning, and is then judged like every other change.
 */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Server } from 'node:https'
import { hostAndPort } from '../../../ground/base/listen-hosts.ts'
import { cannotListen } from '../../../ground/errors/listening.ts'
import type { TlsSource } from '../../xds/credentials.ts'
import type { AdmissionJudge } from './admission-judge.ts'
import { type AdmissionAnswer, readReview, reviewOf } from './review.ts'

/** The API server limits objects to 1.5 MiB, and an update has two. */
const maxBodyBytes = 4 * 1024 * 1024
/** Maximum number of requests that wait; objects of further ones are admitted with a warning. */
const maxWaiting = 32

interface AdmissionServerOptions {
  /** `host:port` or `:port`. */
  readonly address: string
  readonly tls: TlsSource
  /** Authorities (PEM) of client certificates. If omitted, clients need none. */
  readonly clientAuthorities?: Uint8Array
  /** Reads the last segment of the path, which only the API server knows; empty if there is none. */
  readonly token?: () => Promise<string>
  /** Milliseconds after which an object is admitted without a judgement. */
  readonly timeoutMs: number
  readonly notify: (severity: 'warn', text: string) => void
}

export class AdmissionServer {
  address = ''
  readonly #options: AdmissionServerOptions
  #server: Server | undefined
  #stopRenewing: () => void = () => undefined
  /** Undefined while no configuration is known. */
  #judge: AdmissionJudge | undefined
  #waiting = 0

  constructor(options: AdmissionServerOptions) {
    this.#options = options
  }

  set judge(judge: AdmissionJudge | undefined) {
    this.#judge = judge
  }

  /** @throws `port_in_use` or `address_unusable` if the address cannot be bound */
  async start(): Promise<this> {
    const { address, tls, clientAuthorities: ca } = this.#options
    const { certificate, privateKey } = tls.current()
    const { createServer } = await import('node:https')
    const context = (pair: {
      certificate: string | Uint8Array
      privateKey: string | Uint8Array
    }) => ({
      cert: Buffer.from(pair.certificate),
      key: Buffer.from(pair.privateKey),
      minVersion: 'TLSv1.2' as const,
      ...(ca && { ca: Buffer.from(ca) }),
    })
    const server = createServer(
      {
        ...context({ certificate, privateKey }),
        requestTimeout: 10_000,
        requestCert: ca !== undefined,
        rejectUnauthorized: ca !== undefined,
      },
      (request, response) => {
        this.#handle(request, response).catch(() => response.destroy())
      },
    )
    this.#server = server
    this.#stopRenewing = tls.onChange((pair) => server.setSecureContext(context(pair)))
    const colon = address.lastIndexOf(':')
    const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(cannotListen('admission', address, error)))
      server.listen({ port: Number(address.slice(colon + 1)), ...(host && { host }) }, () =>
        resolve(),
      )
    })
    const bound = server.address()
    if (bound !== null && typeof bound === 'object') {
      this.address = hostAndPort(bound.address, bound.port)
    }
    return this
  }

  async close(): Promise<void> {
    this.#stopRenewing()
    const server = this.#server
    if (server === undefined) return
    await new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'https://admission')
    const token = await this.#options.token?.()
    if (!isPath(pathname, token)) return send(response, 404, 'not found\n')
    if (request.method !== 'POST') {
      response.setHeader('allow', 'POST')
      return send(response, 405, 'method not allowed\n')
    }
    const body = await readBody(request)
    if (body === undefined) return send(response, 413, 'the review is too large\n')
    const review = readReview(body)
    if (review === undefined) return send(response, 400, 'expected an AdmissionReview\n')
    const judge = this.#judge
    const answer =
      judge === undefined ? notJudged('no configuration is known yet') : this.#inTime(judge, review)
    const text = JSON.stringify(reviewOf(review.uid, await answer))
    send(response, 200, text, 'application/json')
  }

  async #inTime(
    judge: AdmissionJudge,
    review: NonNullable<ReturnType<typeof readReview>>,
  ): Promise<AdmissionAnswer> {
    if (this.#waiting >= maxWaiting) return notJudged('too many objects wait to be judged')
    this.#waiting++
    const late = new AbortController()
    const timeout = Promise.withResolvers<AdmissionAnswer>()
    const timer = setTimeout(() => {
      late.abort()
      timeout.resolve(notJudged('it took too long'))
    }, this.#options.timeoutMs)
    try {
      return await Promise.race([judge.answer(review, late.signal), timeout.promise])
    } catch (error) {
      const text = `the admission webhook cannot judge an object, and admits it with a warning: ${error}`
      this.#options.notify('warn', text)
      return notJudged('an error occurred')
    } finally {
      clearTimeout(timer)
      this.#waiting--
    }
  }
}

function isPath(pathname: string, token = ''): boolean {
  const given = Buffer.from(pathname)
  const expected = Buffer.from(token === '' ? '/validate' : `/validate/${token}`)
  return given.length === expected.length && timingSafeEqual(given, expected)
}

const notJudged = (reason: string): AdmissionAnswer => ({
  warnings: [`sluice has not judged this change: ${reason}. It is judged after it is applied`],
})

function send(response: ServerResponse, status: number, body: string, type = 'text/plain'): void {
  response.writeHead(status, { 'content-type': type }).end(body)
}

/** Returns undefined if the body is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request) {
    size += part.length
    if (size > maxBodyBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString('utf8')
}
