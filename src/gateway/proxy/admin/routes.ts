/** Routes of the readiness, stats and admin servers. */
import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { type Respond, type Routes, sendText } from '../../../engines/local-server/server.ts'
import type { SeriesAnswer, SeriesQuestion } from '../../../past/series/answer.ts'
import { readQuestion } from '../../../past/series/question.ts'
import type { Exposition } from '../telemetry/exposition.ts'

/** The level of the operational log. */
export interface LevelControl {
  level: string
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

interface ReadinessParts {
  /** What the proxy waits for; empty if it is ready. */
  pending(): readonly string[]
  /** Parts that are not served although the proxy is ready. */
  unserved(): readonly string[]
}

export function readinessRoutes({ pending, unserved }: ReadinessParts): Routes {
  const ready: Respond = (_request, response) => {
    const waiting = pending()
    const missing = unserved().join(', ')
    if (waiting.length > 0) {
      sendText(response, 500, `not ready, pending: ${waiting.join(', ')}\n`)
    } else sendText(response, 200, missing === '' ? 'ready\n' : `ready, without: ${missing}\n`)
  }
  return { '/healthz/ready': { GET: ready } }
}

/** Routes for metrics. `scrape` returns all metrics in the format that `accept` asks for. */
export function statsRoutes(scrape: (accept?: string) => Promise<Exposition>): Routes {
  const metrics: Respond = async ({ headers }, response) => {
    const { contentType, body } = await scrape(headers.accept)
    response.writeHead(200, { 'content-type': contentType, vary: 'accept' }).end(body)
  }
  return { '/metrics': { GET: metrics }, '/stats/prometheus': { GET: metrics } }
}

const jsonType = 'application/json; charset=utf-8'

interface AdminParts {
  dump(): string
  /** Undefined if the process has no operational log. */
  readonly log?: LevelControl
  /** Replaces the keys of TLS session tickets. */
  rotateTickets(): void
  /** Stops the process. */
  quit(): void
  series(question: SeriesQuestion): Promise<SeriesAnswer>
}

/**
 * Returns whether the request comes from a web page in the browser of a user who can reach the address. Pages
 * can post to any address, and can read responses by DNS rebinding.
 */
function isPage({ headers, socket }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site']
  if (headers.origin !== undefined || (site !== undefined && site !== 'none')) return true
  return isLoopback(socket.localAddress) && !namesAddress(headers.host)
}

const isLoopback = (address = ''): boolean => /^(?:::ffff:)?127\.|^::1$/.test(address)

/** Returns whether the host is an IP address or localhost. An attacker may rebind any other name. */
function namesAddress(host = ''): boolean {
  const bare = host.replace(/:\d*$/, '').replace(/^\[|\]$/g, '')
  return bare === '' || bare === 'localhost' || isIP(bare) !== 0
}

function notForPages(routes: Routes): Routes {
  const guarded = (respond: Respond): Respond => {
    return (request, response, url) =>
      isPage(request)
        ? sendText(
            response,
            403,
            'not for web pages: ask by address or localhost, without Origin\n',
          )
        : respond(request, response, url)
  }
  const each = <From, To>(from: Readonly<Record<string, From>>, map: (value: From) => To) =>
    Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]))
  return each(routes, (methods) => each(methods, guarded))
}

export function adminRoutes({ dump, log, rotateTickets, quit, series }: AdminParts): Routes {
  const original = log?.level
  const show: Respond = (_request, response) => {
    sendText(response, 200, `current log level is ${log?.level ?? 'unknown'}\n`)
  }
  const change: Respond = (request, response, url) => {
    const wanted = url.searchParams.has('reset') ? original : url.searchParams.get('level')
    if (wanted !== null && wanted !== undefined) {
      if (log === undefined || !levels.includes(wanted)) {
        const known = levels.join(', ')
        return sendText(response, 400, `unknown level ${JSON.stringify(wanted)}: use ${known}\n`)
      }
      log.level = wanted
    }
    return show(request, response, url)
  }
  return notForPages({
    '/config_dump': {
      GET: (_request, response) => sendText(response, 200, dump(), jsonType),
    },
    '/series': {
      GET: async (_request, response, { searchParams }) => {
        const question = readQuestion(searchParams, Date.now())
        if (!question.ok) return sendText(response, 400, `${question.problems.join('\n')}\n`)
        sendText(response, 200, JSON.stringify(await series(question.value)), jsonType)
      },
    },
    '/logging': { GET: show, POST: change },
    '/rotate_tls_session_keys': {
      POST: (_request, response) => {
        rotateTickets()
        sendText(response, 200, 'new keys for session tickets; those before the last are gone\n')
      },
    },
    '/quitquitquit': {
      POST: (_request, response) => {
        sendText(response, 200, 'shutting down\n')
        quit()
      },
    },
  })
}
