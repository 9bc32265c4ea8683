/** The invariants of MCP: what each request must get, and what each server must have been sent. */
import type { AccessRecord } from '../../../src/gateway/proxy/telemetry/types.ts'
import type { Violation } from '../checks.ts'
import { statusOf } from '../http1-reader.ts'
import { faultStyles, itemKinds, type McpPlan, mayUse, tools } from './plan.ts'
import { type McpRequest, requestsIn } from './request.ts'
import { promptName, uriFor } from './served-item.ts'
import type { McpServer } from './server.ts'

type Say = (invariant: Violation['invariant'], text: string) => void

/** A stream gets a comment every 15 seconds; the rest is time on the way. */
const mostSilenceMs = 17_000
const codes = { invalidParams: -32_602, unsupportedVersion: -32_022 } as const

/** Whether nothing goes wrong in this world, so that every request gets what it asks for. */
export const isCalm = ({ faultChance, servers }: McpPlan): boolean =>
  faultChance === 0 &&
  servers.every(({ forgetsAt, isUpAt }) => forgetsAt === undefined && isUpAt === undefined)

/** Whether modern clients are told to begin a session. */
const needsSessions = ({ isStateless, servers }: McpPlan): boolean =>
  !isStateless && servers.some(({ era }) => era === 'sessions')

export function checkRequest(
  request: McpRequest,
  plan: McpPlan,
  records: readonly AccessRecord[],
  report: Say,
): void {
  const { tag, kind, head, begunAt, excuse, responses, silenceMs } = request
  if (begunAt === 0) return
  const say: Say = (invariant, text) => report(invariant, `${tag} (${kind}): ${text}`)
  checkRecord(request, `/${plan.name}/${tag}`, records, say)
  if (responses.length > 1) say('framing', `gets ${responses.length} responses`)
  const foreign = [...requestsIn(JSON.stringify(request.messages))].find((one) => one !== tag)
  if (foreign !== undefined && kind !== 'resumed') say('isolation', `gets a part of ${foreign}`)
  if (silenceMs > mostSilenceMs) say('progress', `gets nothing for ${Math.floor(silenceMs)} ms`)
  if (excuse !== undefined) return
  if (head === undefined) say('progress', 'gets no response')
  else checkOutcome(request, statusOf(head), plan, say)
}

function checkRecord(
  { head, excuse, mayLackRecord }: McpRequest,
  path: string,
  records: readonly AccessRecord[],
  say: Say,
): void {
  const own = records.filter((record) => record.path === path)
  if (own.length > 1) say('truth', `has ${own.length} records`)
  const [record] = own
  if (head === undefined) return
  if (record === undefined) {
    if (excuse === undefined && !mayLackRecord) say('truth', 'has no record')
  } else if (record.status !== statusOf(head)) {
    say('truth', `is recorded with ${record.status}, and gets ${head.startLine}`)
  }
}

function checkOutcome(request: McpRequest, status: number, plan: McpPlan, say: Say): void {
  const { kind, party, responses } = request
  const wants = (expected: number) => {
    if (status !== expected) say('framing', `gets ${status} in place of ${expected}`)
  }
  // What protects sessions holds whatever goes wrong.
  if (kind === 'foreign' || kind === 'forged' || kind === 'deleted') {
    if (status !== 404) say('protection', `gets ${status} with a session that it does not have`)
    return
  }
  if (kind === 'list') checkNames(request, plan, say)
  if (itemKinds.some((one) => one === kind)) checkItem(request, plan, say)
  if (kind.endsWith('call')) checkCall(request, status, plan, say)
  if (!isCalm(plan)) return
  if (kind === 'notice' || kind === 'answer') wants(202)
  else if (kind === 'delete') wants(200)
  else if (kind === 'discover') wants(needsSessions(plan) ? 400 : 200)
  else if (kind === 'initialize' || kind === 'ping') {
    wants(200)
    if (responses[0]?.result === undefined) say('framing', 'gets no result')
  } else if (kind === 'list' && !(party.plan.isModern && needsSessions(plan))) wants(200)
}

/** No list has a tool that the rules refuse. */
function checkNames(request: McpRequest, { servers }: McpPlan, say: Say): void {
  for (const name of namesIn(request)) {
    const own = servers.length === 1 ? name : name.slice(name.indexOf('_') + 1)
    const tool = tools.find((one) => one === own)
    if (tool === undefined || !mayUse(tool, request.party.plan.isWriter)) {
      say('protection', `lists the tool ${name}`)
    }
  }
}

const namesIn = ({ responses }: McpRequest): string[] =>
  responses.flatMap(({ result }) =>
    ((result?.tools ?? []) as readonly { readonly name: string }[]).map(({ name }) => name),
  )

/** Resources and prompts are those of the server that the client names, under the names of the client. */
function checkItem(request: McpRequest, plan: McpPlan, say: Say): void {
  const { kind, step, responses, tag, party } = request
  const [response] = responses
  if (step === undefined) return
  const text = JSON.stringify(response ?? {})
  const hasNoSession = party.plan.isModern && needsSessions(plan)
  const mayAsk = party.plan.isWriter || !kind.startsWith('prompt')
  if (!mayAsk) {
    if (text.includes(promptName)) {
      const isRefusal = response?.error?.code === codes.invalidParams
      if (!isRefusal) say('protection', `gets ${text}, although the rules hide prompts`)
    }
    return
  }
  if (response?.result === undefined) {
    if (isCalm(plan) && !hasNoSession) say('framing', `gets ${text} in place of a result`)
    return
  }
  const isOnly = plan.servers.length === 1
  const uri = uriFor(step.server.name, isOnly)
  const isOwn = kind === 'read' || kind === 'prompt'
  if (isOwn && !text.includes(`${tag} at ${step.server.name}`)) say('isolation', `gets ${text}`)
  if (kind === 'read' && !text.includes(`"uri":"${uri}"`)) say('framing', `gets ${text}`)
  if (!isCalm(plan) || hasNoSession || (kind !== 'resources' && kind !== 'prompts')) return
  for (const { name } of plan.servers) {
    const item =
      kind === 'resources' ? uriFor(name, isOnly) : isOnly ? promptName : `${name}_${promptName}`
    if (!text.includes(`"${item}"`)) say('framing', `gets no ${item} in ${text}`)
  }
}

/**
 * Sessions that replace forgotten ones: one for each client, whatever worker needs it, with the subscriptions that
 * the client has made before.
 */
export function checkRenewed(
  servers: readonly McpServer[],
  requests: readonly McpRequest[],
  { isStateless, faultChance }: McpPlan,
  report: Say,
): void {
  if (isStateless || faultChance > 0) return
  for (const { plan: server, sessions } of servers) {
    const { forgetsAt, isUpAt } = server
    if (forgetsAt === undefined || isUpAt !== undefined) continue
    const later = [...sessions.values()].filter(({ begunAt }) => begunAt > forgetsAt)
    for (const [party, renewed] of Map.groupBy(later, ({ party }) => party)) {
      const own = requests.filter((one) => one.party.tag === party)
      if (own.length === 0 || own.some((one) => one.party.plan.isModern)) continue
      if (renewed.length > 1) {
        report('accounts', `${server.name} has ${renewed.length} sessions of ${party} after a loss`)
      }
      const before = own.some(
        ({ kind, step, responses, lastAt }) =>
          kind === 'subscribe' &&
          step?.server === server &&
          responses[0]?.result !== undefined &&
          lastAt < forgetsAt,
      )
      if (before && !renewed.every(({ subscribed }) => subscribed.size > 0)) {
        report('truth', `${party} is not subscribed any more at ${server.name}`)
      }
    }
  }
}

function checkCall(request: McpRequest, status: number, plan: McpPlan, say: Say): void {
  const { step, party, responses, tag, arrivals } = request
  if (step === undefined) return
  const [response] = responses
  const text = JSON.stringify(response ?? {})
  const { server, style, tool } = step
  if (!mayUse(tool, party.plan.isWriter)) {
    if (arrivals > 0) say('protection', 'reaches a server, although the rules refuse it')
    if (response?.error?.code !== codes.invalidParams && isCalm(plan))
      say('framing', `gets ${text}`)
    return
  }
  const hasNoSession = party.plan.isModern && !plan.isStateless && server.era === 'sessions'
  if (hasNoSession && status === 200 && response?.result !== undefined) {
    say('isolation', 'uses a server that keeps sessions without one')
  }
  const isResult = response?.result !== undefined
  if (isResult && !text.includes(`${tag} at ${server.name}`)) say('isolation', `gets ${text}`)
  if (!isCalm(plan) || faultStyles.includes(style)) return
  if (hasNoSession) {
    if (response?.error?.code !== codes.unsupportedVersion) say('framing', `gets ${text}`)
  } else if (style === 'refused') {
    const isOwn = response?.error?.message.includes(`session_length of ${tag}`) === true
    if (!isOwn) say('framing', `gets ${status} ${text} in place of the error of its server`)
  } else if (!isResult) say('framing', `gets ${status} ${text} in place of a result`)
  else if (style === 'asks' && !text.includes(party.plan.maySample ? ' answered' : ' refused')) {
    say('truth', `gets ${text} after a question`)
  }
}

/** The lists of a client have all tools that it may use. */
export function checkLists(requests: readonly McpRequest[], plan: McpPlan, report: Say): void {
  if (!isCalm(plan)) return
  for (const first of requests) {
    const { party, kind, isRest, step } = first
    if (kind !== 'list' || isRest || first.begunAt === 0) continue
    if (party.plan.isModern && needsSessions(plan)) continue
    const names = requests
      .filter((one) => one.kind === 'list' && one.step === step)
      .flatMap(namesIn)
      .sort()
    const own = tools.filter((tool) => mayUse(tool, party.plan.isWriter))
    const isOnly = plan.servers.length === 1
    const expected = plan.servers
      .flatMap(({ name }) => own.map((tool) => (isOnly ? tool : `${name}_${tool}`)))
      .sort()
    if (names.join() !== expected.join()) {
      report('framing', `${first.tag}: lists ${names} in place of ${expected}`)
    }
  }
}

/** Sessions at servers: one for each client, and none after the client has ended its own. */
export function checkSessions(
  servers: readonly McpServer[],
  requests: readonly McpRequest[],
  plan: McpPlan,
  report: Say,
): void {
  if (!isCalm(plan)) return
  for (const { plan: server, sessions } of servers) {
    const byParty = Map.groupBy(sessions.values(), ({ party }) => party)
    for (const [party, all] of byParty) {
      const own = requests.filter((one) => one.party.tag === party)
      const isModern = own.some(({ party }) => party.plan.isModern)
      // The gateway begins sessions for modern clients only to find out that the server keeps them.
      const isEnded =
        plan.isStateless ||
        isModern ||
        own.some(({ kind, head }) => kind === 'delete' && head && statusOf(head) === 200)
      const open = all.filter(({ isDeleted }) => !isDeleted)
      if (isEnded && open.length > 0) {
        report('accounts', `${server.name} keeps ${open.length} ended sessions of ${party}`)
      }
      if (!plan.isStateless && !isModern && all.length > 1) {
        report('accounts', `${server.name} has ${all.length} sessions of ${party}`)
      }
    }
  }
}
