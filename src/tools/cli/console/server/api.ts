/**
 * The data of the console, for a page that has the key:
 *
 *   GET  /api/about               what the console shows, and what it offers
 *   GET  /api/events?from=&to=    events as lines of an export; `at` has a list of positions instead
 *   GET  /api/heads?from=&to=     position, time, type and subject of the same events, one array per line
 *   GET  /api/tail?from=          events as in `events`, and those to come; never ends
 *   GET  /api/snapshots           position and fold version of each stored state
 *   GET  /api/snapshot?at=        the newest state at or before a position; `foldVersion` may be required
 *   GET  /api/export              the export that the console shows, unchanged
 *   GET  /api/decisions           the newest records of requests that match, one per line
 *   GET  /api/decisions/tail      records of requests that end from now on; never ends
 *   GET  /api/metrics             metrics of the process
 *   GET  /api/series?since=&by=   time series, as the admin endpoint /series answers
 *   POST /api/commands/NAME       runs a command that only reads, such as `simulate`
 *   POST /api/actions/NAME        runs a command that changes something, such as `rollback`
 *   POST /api/send                sends a request to a listener of the gateway
 */
import { createReadStream } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { exportedState } from '../../../../control/log/export.ts'
import { exportLine } from '../../../../control/log/export-lines.ts'
import {
  type EventLog,
  LogError,
  type Position,
  type Recorded,
} from '../../../../control/log/index.ts'
import { sendText } from '../../../../engines/local-server/server.ts'
import { prometheusContentType } from '../../../../ground/base/prometheus.ts'
import type { RecordedDecision } from '../../../../past/decisions/record.ts'
import { readQuestion } from '../../../../past/series/question.ts'
import { followEvents } from './follow-events.ts'
import { LineStream } from './line-stream.ts'
import { readJsonBody } from './request-body.ts'
import type { Person } from './sign-in.ts'
import { type CommandOutput, type ConsoleSource, QueryError } from './source.ts'

/** A request that the console cannot serve. */
class RequestError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

type RequestHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  query: URLSearchParams,
) => Promise<void>

type Options = Readonly<Record<string, unknown>>

const noActions = 'people may not act in this console: start it with --console-actions true'

/** Maximum number of records in one response. */
const maxDecisions = 10_000
/** Number of records that are read before other work may run. */
const decisionsPerTurn = 200

export class Api {
  readonly #source: ConsoleSource
  readonly #ending = new AbortController()
  readonly #gets: Readonly<Record<string, RequestHandler>> = {
    '/api/events': (request, response, query) => this.#events(request, response, query),
    '/api/heads': (request, response, query) => this.#events(request, response, query, headLine),
    '/api/snapshots': (_, response) => this.#snapshots(response),
    '/api/snapshot': (_, response, query) => this.#snapshot(response, query),
    '/api/tail': (request, response, query) => this.#tail(request, response, query),
    '/api/export': (_, response) => this.#export(response),
    '/api/decisions': (request, response, query) => this.#decisions(request, response, query),
    '/api/decisions/tail': (request, response) => this.#decisionsTail(request, response),
    '/api/metrics': (_, response) => this.#metrics(response),
    '/api/series': (_, response, query) => this.#series(response, query),
  }

  constructor(source: ConsoleSource) {
    this.#source = source
  }

  /** Ends the streams. */
  close(): void {
    this.#ending.abort()
  }

  async handle(
    request: IncomingMessage,
    response: ServerResponse,
    url: URL,
    person: Person,
  ): Promise<void> {
    try {
      if (url.pathname === '/api/about') await this.#about(response, person)
      else {
        const handler = this.#handlerOf(request, response, url, person)
        await handler(request, response, url.searchParams)
      }
    } catch (error) {
      if (response.destroyed) return
      if (response.headersSent) return void response.destroy()
      if (error instanceof RequestError) sendText(response, error.status, `${error.message}\n`)
      else if (error instanceof QueryError) sendText(response, 400, `${error.message}\n`)
      else if (error instanceof LogError) sendText(response, statusOf(error), `${error.message}\n`)
      else throw error
    }
  }

  #handlerOf(
    { method }: IncomingMessage,
    response: ServerResponse,
    url: URL,
    person: Person,
  ): RequestHandler {
    const post = this.#postOf(url.pathname, person)
    const get = Object.hasOwn(this.#gets, url.pathname) ? this.#gets[url.pathname] : undefined
    const handlers: Partial<Record<string, RequestHandler>> =
      post === undefined ? { GET: get, HEAD: get } : { POST: post }
    if (post === undefined && get === undefined) throw new RequestError(404, 'not found')
    const handler = handlers[method ?? '']
    if (handler !== undefined) return handler
    response.setHeader('allow', post === undefined ? 'GET, HEAD' : 'POST')
    throw new RequestError(405, 'method not allowed')
  }

  #postOf(path: string, { name: author }: Person): RequestHandler | undefined {
    if (path === '/api/send') return (request, response) => this.#send(request, response)
    const [, group, name = ''] = /^\/api\/(commands|actions)\/([a-z-]+)$/.exec(path) ?? []
    if (group === undefined) return undefined
    const { runCommand, runAction } = this.#source
    const run =
      group === 'commands'
        ? runCommand
        : runAction && ((action: string, options: Options) => runAction(action, options, author))
    if (run !== undefined) return (request, response) => this.#run(run, name, request, response)
    const why = group === 'commands' ? 'this console runs no commands' : noActions
    throw new RequestError(404, why)
  }

  async #about(response: ServerResponse, { name, roles }: Person): Promise<void> {
    const { version, foldVersion, isLive, exportFile } = this.#source
    const { decisions, metrics, series, runCommand, runAction, send } = this.#source
    const isOperator = roles.includes('operate')
    const log = this.#source.log?.()
    const about = {
      version,
      foldVersion,
      isLive,
      isExport: exportFile !== undefined,
      person: name,
      ...(log !== undefined && {
        log: { first: await log.firstPosition(), last: await log.lastPosition() },
      }),
      offers: {
        decisions: decisions !== undefined,
        metrics: metrics !== undefined,
        series: series !== undefined,
        commands: runCommand !== undefined,
        send: send !== undefined && isOperator,
        actions: runAction !== undefined && isOperator,
      },
    }
    sendText(response, 200, JSON.stringify(about), 'application/json; charset=utf-8')
  }

  async #events(
    request: IncomingMessage,
    response: ServerResponse,
    query: URLSearchParams,
    lineOf: (recorded: Recorded) => string = exportLine,
  ) {
    const log = this.#openLog()
    const positions = positionsOf(query)
    const from = positionOf(query, 'from') ?? (await log.firstPosition())
    const to = positionOf(query, 'to')
    const ranges = positions?.map((at) => ({ from: at, to: at })) ?? [
      { from, ...(to !== undefined && { to }) },
    ]
    const lines = this.#lines(request, response)
    for (const range of ranges) {
      for await (const recorded of log.read(range)) {
        if (!(await lines.write(lineOf(recorded)))) return
      }
    }
    await lines.end()
  }

  async #snapshots(response: ServerResponse): Promise<void> {
    const stored = await this.#openLog().snapshots()
    const infos = stored.map(({ position, foldVersion }) => ({ position, foldVersion }))
    sendText(response, 200, JSON.stringify(infos), 'application/json; charset=utf-8')
  }

  async #snapshot(response: ServerResponse, query: URLSearchParams): Promise<void> {
    const foldVersion = query.get('foldVersion') ?? undefined
    const atMost = positionOf(query, 'at')
    const snapshot = await this.#openLog().loadSnapshot({ atMost, foldVersion })
    if (snapshot === undefined) throw new RequestError(404, 'no state is stored there')
    const state = exportedState(snapshot)
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'sluice-position': snapshot.position,
      'sluice-fold-version': snapshot.foldVersion,
    })
    response.end(state)
  }

  async #tail(request: IncomingMessage, response: ServerResponse, query: URLSearchParams) {
    const log = this.#openLog()
    const from = positionOf(query, 'from') ?? (((await log.lastPosition()) + 1) as Position)
    const lines = this.#lines(request, response)
    lines.keepAlive()
    const events =
      this.#source.isOwnLog === true
        ? log.tail(from, { signal: lines.signal })
        : followEvents(log, from, lines.signal)
    for await (const recorded of events) {
      if (!(await lines.write(exportLine(recorded)))) return
    }
    await lines.end()
  }

  async #export(response: ServerResponse): Promise<void> {
    const { exportFile } = this.#source
    if (exportFile === undefined) throw new RequestError(404, 'this console shows no export')
    response.writeHead(200, { 'content-type': 'application/octet-stream' })
    await pipeline(createReadStream(exportFile), response)
  }

  async #decisions(request: IncomingMessage, response: ServerResponse, query: URLSearchParams) {
    const { decisions } = this.#source
    if (decisions === undefined) throw new RequestError(404, 'no decisions are recorded')
    const most = Math.min(numberOf(query, 'limit') ?? 200, maxDecisions)
    const selected: RecordedDecision[] = []
    const problems: string[] = []
    let count = 0
    const lines = this.#lines(request, response)
    await decisions.read(
      queryOf(query),
      (problem) => problems.push(problem),
      async (decision) => {
        selected.push(decision)
        // Only the newest are kept, so that memory use does not depend on the number of records.
        if (selected.length >= 2 * most) selected.splice(0, selected.length - most)
        if (++count % decisionsPerTurn === 0) await nextTurn()
        return !lines.signal.aborted
      },
    )
    for (const decision of selected.slice(-most)) {
      if (!(await lines.write(`${JSON.stringify(decision)}\n`))) return
    }
    await lines.write(`${JSON.stringify({ selected: count, problems })}\n`)
    await lines.end()
  }

  async #decisionsTail(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { decisions } = this.#source
    if (decisions === undefined) throw new RequestError(404, 'no decisions are recorded')
    const lines = this.#lines(request, response)
    lines.keepAlive()
    for await (const decision of decisions.tail(lines.signal)) {
      if (!(await lines.write(`${JSON.stringify(decision)}\n`))) return
    }
    await lines.end()
  }

  async #metrics(response: ServerResponse): Promise<void> {
    const { metrics } = this.#source
    if (metrics === undefined) throw new RequestError(404, 'the source has no metrics')
    sendText(response, 200, await metrics(), prometheusContentType)
  }

  async #series(response: ServerResponse, query: URLSearchParams): Promise<void> {
    const { series } = this.#source
    if (series === undefined) throw new RequestError(404, 'the source has no time series')
    const question = readQuestion(query, Date.now())
    if (!question.ok) throw new RequestError(400, question.problems.join('\n'))
    const answer = await series(question.value)
    if (answer === undefined) throw new RequestError(503, 'the event log is being opened')
    sendText(response, 200, JSON.stringify(answer), 'application/json; charset=utf-8')
  }

  async #run(
    run: (name: string, options: Options) => Promise<CommandOutput | undefined>,
    name: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const result = await run(name, await bodyOf(request))
    if (result === undefined) throw new RequestError(404, `there is no command ${name}`)
    sendText(response, 200, JSON.stringify(result), 'application/json; charset=utf-8')
  }

  async #send(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { send } = this.#source
    if (send === undefined) {
      throw new RequestError(404, 'pages may not send requests: start with --console-actions true')
    }
    const body = await bodyOf(request)
    const lines = this.#lines(request, response)
    for await (const part of send(body, lines.signal)) {
      if (!(await lines.write(`${JSON.stringify(part)}\n`))) return
    }
    await lines.end()
  }

  #openLog(): EventLog {
    const { log, exportFile } = this.#source
    if (exportFile !== undefined) throw new RequestError(404, 'the source is an export')
    const open = log?.()
    if (open === undefined) throw new RequestError(503, 'the event log is being opened')
    return open
  }

  #lines(request: IncomingMessage, response: ServerResponse): LineStream {
    return new LineStream(request, response, this.#ending.signal)
  }
}

/** @throws RequestError if the body is not a JSON object, or too large */
async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const body = await readJsonBody(request)
  if (body.ok) return body.value
  const [problem] = body.problems
  throw new RequestError(problem?.status ?? 400, problem?.message ?? '')
}

function numberOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = Number(text)
  if (/^\d{1,15}$/.test(text) && value > 0) return value
  throw new RequestError(400, `${name}: expected a positive number`)
}

/** What a list of events shows, in a few bytes. */
const headLine = ({ position, event }: Recorded): string =>
  `${JSON.stringify([position, event.time, event.type, event.subject])}\n`

const positionOf = (query: URLSearchParams, name: string): Position | undefined =>
  numberOf(query, name) as Position | undefined

/** Maximum number of positions in a list. */
const maxPositions = 500

/** The positions of the list `at`; undefined if there is none. */
function positionsOf(query: URLSearchParams): Position[] | undefined {
  const list = query.get('at')?.split(',')
  if (list === undefined) return undefined
  if (list.length > maxPositions || !list.every((text) => /^[1-9]\d{0,14}$/.test(text))) {
    throw new RequestError(
      400,
      `at: expected at most ${maxPositions} positions, separated by commas`,
    )
  }
  return list.map((text) => Number(text) as Position)
}

const filters = [
  'id',
  'status',
  'route',
  'backend',
  'since',
  'until',
  'tool',
  'target',
  'refusedBy',
  'principal',
] as const

/** Empty values do not filter. */
function queryOf(query: URLSearchParams): Partial<Record<(typeof filters)[number], string>> {
  return Object.fromEntries(
    filters.flatMap((name) => {
      const value = query.get(name) ?? ''
      return value === '' ? [] : [[name, value]]
    }),
  )
}

/** 410: the events are gone, and the page must begin with a newer position. */
const statusOf = ({ code }: LogError): number => (code === 'purged' ? 410 : 503)
