/**
 * Runs guards on the definitions of servers: the items of their lists, and their instructions. Lists are long and
 * rarely change, so the verdict about each definition is reused. A refused item does not remove the others.
 */
import { hexDigest } from '../../../../../ground/base/digest.ts'
import type { PlacedGuard } from '../../../ai/policy/bind-guard.ts'
import {
  type JsonNode,
  jsonValue,
  member,
  rawOf,
  replace,
  rootOf,
  textOf,
} from '../../json/node.ts'
import { resultText } from '../../json-rpc.ts'
import { unshared } from '../../lists.ts'
import { type McpResponse, readResponse } from '../../message.ts'
import type { ListMethod } from '../../methods.ts'
import type { GuardedDefinition } from '../../policy/call-policy.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { TargetFailure } from '../target/target-failure.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { orRefused } from './guard-messages.ts'
import { definitionTexts, type TextGroup, withTexts } from './guarded-texts.ts'
import { inScope, runGuards } from './run-guards.ts'

/** Number of definitions that are judged at once. */
const maxAtOnce = 8
/** Maximum number of findings of a response that are recorded. */
const maxFindings = 10

type Judge = (what: string, text: string) => Promise<string | undefined>

/** Returns the list without the items that guards refuse, and with their masks. */
export async function guardList(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  response: McpResponse,
): Promise<McpResponse> {
  const list = member(response.result, method.member)
  const judge = list && judgeOf(exchange, entry)
  if (list === undefined || judge === undefined) return response
  const { text } = response
  const judged = await mapAtOnce(list.values ?? [], async (node) => {
    const before = rawOf(text, node)
    const name = textOf(text, member(node, method.key)) ?? ''
    return { before, after: await judge(`${method.name}: ${method.type} ${name}`, before) }
  })
  if (judged.every(({ before, after }) => before === after)) return response
  const items = judged.flatMap(({ after }) => after ?? [])
  return changed(response, list, `[${items.join(',')}]`)
}

/** Returns the response to `initialize` or `server/discover` with the masks of guards, or without refused instructions. */
export async function guardInstructions(
  exchange: McpExchange,
  entry: McpTargetEntry,
  response: McpResponse,
): Promise<McpResponse> {
  const node = member(response.result, 'instructions')
  const before = textOf(response.text, node)
  const judge = before === undefined ? undefined : judgeOf(exchange, entry)
  if (node === undefined || before === undefined || judge === undefined) return response
  const item = JSON.stringify({ instructions: before })
  const after = await judge('instructions', item)
  if (after === item) return response
  const { instructions = '' } =
    after === undefined ? {} : (jsonValue(after, rootOf(after)) as { instructions?: string })
  return changed(response, node, JSON.stringify(instructions))
}

function changed(response: McpResponse, node: JsonNode, text: string): McpResponse {
  const read = readResponse(replace(response.text, node, text))
  if (read === undefined) throw new TargetFailure('the response cannot be guarded')
  return unshared(read)
}

/** Returns a function that resolves to a definition after the guards, or to undefined if one refuses it. */
function judgeOf(exchange: McpExchange, entry: McpTargetEntry): Judge | undefined {
  const policy = exchange.callPolicyOf(entry)
  const guards = inScope(policy?.responseGuards ?? [], 'Definitions')
  if (policy === undefined || guards.length === 0) return undefined
  // A webhook may get headers of the client, and each message is sampled separately.
  const isKept = guards.every(
    ({ guard, settings }) => guard.type !== 'webhook' && settings.percent === undefined,
  )
  let noted = 0
  return async (what, text) => {
    const key = isKept ? hexDigest('sha256', text) : ''
    const known = isKept ? policy.definitions.get(key) : undefined
    const found = known ?? (await judgeDefinition(exchange, entry, guards, text))
    if (isKept && !found.hasFailed) policy.definitions.set(key, found)
    for (const finding of found.findings) {
      if (noted++ < maxFindings) exchange.noteRefusal(entry, `${what}: ${finding}`, false)
    }
    if (found.text === undefined) exchange.noteRefusedBy('guard')
    return found.text
  }
}

async function judgeDefinition(
  exchange: McpExchange,
  entry: McpTargetEntry,
  guards: readonly PlacedGuard[],
  text: string,
): Promise<GuardedDefinition> {
  const groups = definitionTexts(text, rootOf(text))
  const outcome = await runGuards(guards, groups, 'response', exchange.client, 'Definitions')
  for (const check of outcome.checks) exchange.noteCheck(entry, check)
  const hasFailed = outcome.checks.some(({ action }) => action === 'Fail' || action === 'FailOpen')
  const { findings, refusal, texts } = outcome
  if (refusal !== undefined) return { text: undefined, findings, hasFailed }
  return { text: texts === undefined ? text : masked(text, groups, texts), findings, hasFailed }
}

/** Returns undefined if the masks have made two keys equal. */
function masked(
  text: string,
  groups: readonly TextGroup[],
  texts: readonly string[],
): string | undefined {
  const after = withTexts({ text }, groups, texts)
  return orRefused(() => readResponse(resultText('1', after))) && after
}

/** Applies an asynchronous function to all values, to at most `maxAtOnce` of them at the same time. */
async function mapAtOnce<Value, Result>(
  values: readonly Value[],
  map: (value: Value) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (let at = 0; at < values.length; at += maxAtOnce) {
    results.push(...(await Promise.all(values.slice(at, at + maxAtOnce).map(map))))
  }
  return results
}
