/** One message of an MCP client, with its request and its backend. */
import { hash } from 'node:crypto'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import { quoteInDetail } from '../../../../../ground/exchange/exchange.ts'
import { lowerCase } from '../../../../../ground/exchange/field-case.ts'
import type { LearnedRecord } from '../../../../../ground/exchange/learned.ts'
import type { McpItem, McpRules } from '../../../../../ground/exchange/mcp.ts'
import { addNote } from '../../../../../ground/exchange/notes.ts'
import { isFieldValue } from '../../../../../ground/model/header-changes.ts'
import type { McpList } from '../../../../../ground/model/mcp-lists.ts'
import type { Step } from '../../../../policies/define.ts'
import { nameProblem } from '../../../../policies/ext-auth/names.ts'
import { principalDigest } from '../../../../principal/principal.ts'
import type { BackendAccess } from '../../../../proxy/config/backend-access.ts'
import type { RulePlacement } from '../../../../proxy/config/placement.ts'
import type { CompiledBackend } from '../../../../proxy/config/rules.ts'
import type { RequestContext } from '../../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../../proxy/request/runtime.ts'
import { errorCodeOf, isToolError } from '../../json-rpc.ts'
import { mcpStepOf } from '../../policy/apply.ts'
import type { CallPolicy } from '../../policy/call-policy.ts'
import type { HeaderChanges } from '../../policy/processor.ts'
import { ClientView } from '../session/client-view.ts'
import type { McpSharedState } from '../session/shared-state.ts'
import { type ClientBackend, clientBackend } from '../target/client-backend.ts'
import type { McpBackend, McpTargetEntry } from '../target/targets.ts'
import { accessAt, pinKey } from '../target/targets.ts'
import { isOwnHeader, mayIdentify } from './forwarded-headers.ts'
import type { GuardChecks, McpGuardCheck } from './guard-checks.ts'
import type { McpDetails, RefusedBy } from './mcp-record.ts'

/** Path as the client sent it, before filters of the route changed it. */
function sentPath({ exchange, original }: RequestContext): string {
  return original === undefined ? exchange.request.path : original.path.replace(/\?.*$/s, '')
}

function viewOf(context: RequestContext): ClientView {
  const identifying = context.exchange.receivedNames(mayIdentify)
  return ClientView.of(context.exchange, identifying, () => context.over)
}

/** Data of a request that is read when its exchange ends. */
export interface McpNotes {
  readonly checks: GuardChecks
  /** Adds the log entry of a message, in place of the one that the message had before. */
  note(details: McpDetails, before: McpDetails | undefined): void
  /** Adds a function that is called when the exchange ends. */
  onClose(close: () => void): void
}

export class McpExchange {
  readonly context: RequestContext
  readonly runtime: GatewayRuntime
  readonly shared: McpSharedState
  readonly notes: McpNotes
  readonly placement: RulePlacement
  readonly chosen: CompiledBackend
  /** The copy of the request that policies see and that requests to targets are made from. */
  readonly client: ClientView
  /** Whether another thread has received the request. Then `context` is the context of the client's stream. */
  readonly #isPassedOn: boolean
  #details: McpDetails | undefined
  #identity: string | undefined
  #view: ClientBackend | undefined

  constructor(
    context: RequestContext,
    runtime: GatewayRuntime,
    shared: McpSharedState,
    notes: McpNotes,
    client = viewOf(context),
    isPassedOn = false,
  ) {
    const { placement, backend } = context
    if (placement === undefined || backend === undefined) throw new GatewayError('no_backends')
    this.context = context
    this.runtime = runtime
    this.shared = shared
    this.notes = notes
    this.placement = placement
    this.chosen = backend
    this.client = client
    this.#isPassedOn = isPassedOn
  }

  /** Makes an exchange for one message of a batch. Each message is authorized and logged separately. */
  forMessage(): McpExchange {
    const { client } = this
    const copy = ClientView.of(client, client.identifying, () => client.isOver)
    return this.#with(copy, this.#isPassedOn)
  }

  /** Makes an exchange for a message of the same client that another thread has received. */
  passedOn(client: ClientView): McpExchange {
    return this.#with(client, true)
  }

  #with(client: ClientView, isPassedOn: boolean): McpExchange {
    return new McpExchange(this.context, this.runtime, this.shared, this.notes, client, isPassedOn)
  }

  /** Digest of the client's verified credentials; undefined if there are none. */
  get principal(): string | undefined {
    return principalDigest(this.client)
  }

  /**
   * Digest of everything in the request that may identify its client to a server: the verified credentials,
   * and each header that is forwarded and not known to be harmless.
   */
  get identity(): string {
    this.#identity ??= this.#digest()
    return this.#identity
  }

  #digest(): string {
    const fields = this.client.request.headers.pairs
      .map(([name, value]) => [lowerCase(name), value] as const)
      .filter(([name]) => mayIdentify(name))
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return hash('sha256', JSON.stringify([this.principal, fields]), 'base64url')
  }

  /** Applies changes of headers for the targets. Returns false, and changes nothing, if one is not allowed. */
  changeHeaders({ set, remove }: HeaderChanges): boolean {
    const isAllowed = (name: string) =>
      nameProblem(name) === undefined && !isOwnHeader(lowerCase(name))
    if (!set.every(([name, value]) => isAllowed(name) && isFieldValue(value))) return false
    if (!remove.every(isAllowed)) return false
    const { client } = this
    for (const name of remove) client.request.headers.remove(name)
    for (const [name, value] of set) client.request.headers.set(name, value)
    const names = new Set(set.map(([name]) => lowerCase(name)))
    client.identifying = client.identifying.filter((name) => !names.has(name))
    this.#identity = undefined
    return true
  }

  /** Sets the variable `mcpGuardrails` of expressions. */
  learnGuardrails(metadata: LearnedRecord): void {
    const { learned } = this.client
    learned.mcpGuardrails = { ...learned.mcpGuardrails, ...metadata }
    if (this.context.over || this.#isPassedOn) return
    this.context.exchange.learned.mcpGuardrails = learned.mcpGuardrails
  }

  /** The part of the backend that the client gets, in its current configuration. */
  get backend(): McpBackend {
    const found = this.currentView
    if (found === undefined) throw new GatewayError('backend_invalid', this.chosen.name)
    return found.backend
  }

  /** Undefined if the backend was removed, which may happen while a stream is open. */
  get currentView(): ClientBackend | undefined {
    const whole = this.shared.backends.find(this.chosen.name)
    if (whole === undefined) return undefined
    if (this.#view?.whole !== whole) {
      const path = whole.servers.length === 0 ? '' : sentPath(this.context)
      this.#view = clientBackend(whole, path, this.client)
    }
    return this.#view
  }

  /** What the client gets of the backend. */
  get view(): ClientBackend {
    const found = this.currentView
    if (found === undefined) throw new GatewayError('backend_invalid', this.chosen.name)
    return found
  }

  /** The only target of the backend; undefined if there are several. */
  get only(): McpTargetEntry | undefined {
    const { whole } = this.view
    return whole.targets.length === 1 ? whole.targets[0] : undefined
  }

  find(target: string): McpTargetEntry | undefined {
    return this.backend.targets.find((entry) => entry.target.name === target)
  }

  /** Name of the backend, as `namespace/name`. */
  get name(): string {
    return this.chosen.name
  }

  /** Returns the merged policies of a target. */
  accessOf(entry: McpTargetEntry): BackendAccess {
    return accessAt(this.placement, this.runtime, entry)
  }

  /** Digests of the approved versions of a list by name; undefined if clients may get any version. */
  pinsOf({ target }: McpTargetEntry, list: McpList): ReadonlyMap<string, string> | undefined {
    const { pins } = this.backend
    return pins.size === 0 ? undefined : pins.get(pinKey({ target: target.name, list }))
  }

  rulesOf(entry: McpTargetEntry): McpRules | undefined {
    return rulesIn(this.accessOf(entry))
  }

  /**
   * Whether anything is configured that may read the arguments of items. Parsing them costs as much as parsing the
   * message.
   */
  needsArguments(entry: McpTargetEntry): boolean {
    const { accessLog, tracing } = this.context.observers
    if (accessLog !== undefined || tracing !== undefined) return true
    if (this.client.budgets?.countsCalls === true) return true
    const step = mcpStepOf(this.accessOf(entry).policies)
    return step?.mcp !== undefined || step?.calls !== undefined
  }

  /** Whether clients may not get every item of the target, so that unknown ones must look like refused ones. */
  withholdsItems(entry: McpTargetEntry): boolean {
    const step = mcpStepOf(this.accessOf(entry).policies)
    const hasHidden = step?.calls?.scan?.hides === true || entry.tools !== undefined
    return step?.mcp !== undefined || hasHidden || isPinned(entry)
  }

  /** Whether rules or guards apply to the target, which cannot be applied to methods that are not known. */
  isGuarded(entry: McpTargetEntry): boolean {
    const step = mcpStepOf(this.accessOf(entry).policies)
    return step?.mcp !== undefined || step?.calls !== undefined
  }

  /** Whether rules or processors may give one client what they refuse to another. */
  differsByClient(entry: McpTargetEntry): boolean {
    const step = mcpStepOf(this.accessOf(entry).policies)
    return step?.mcp !== undefined || (step?.calls?.processors.length ?? 0) > 0
  }

  /** The settings for calls of the target; undefined if there are none. */
  callPolicyOf(entry: McpTargetEntry): CallPolicy | undefined {
    return mcpStepOf(this.accessOf(entry).policies)?.calls
  }

  /** Adds why something of a target was refused to the record of the decision. */
  noteRefusal(entry: McpTargetEntry, text: string, isResponse = true): void {
    // The thread that received the request records it.
    if (this.context.over || this.#isPassedOn) return
    const step = mcpStepOf(this.accessOf(entry).policies)
    addNote(this.context.exchange, 'backend.mcp', text, { step, isResponse })
  }

  /** Counts what a guard or processor of a target has decided. */
  noteCheck(entry: McpTargetEntry, check: McpGuardCheck): void {
    this.notes.checks.add(mcpStepOf(this.accessOf(entry).policies), check)
  }

  /** Whether the rules allow the client to use the item. `args` has the parsed arguments. */
  mayUse(entry: McpTargetEntry, method: string, item: McpItem, args: unknown): boolean {
    const rules = this.rulesOf(entry)
    this.describe(method, item, args)
    const refusal = rules?.refusal(this.client, { method, item, isListed: false })
    if (refusal !== undefined) {
      this.noteRefusal(entry, `${method} of ${itemText(item)}: ${refusal}`)
      this.noteRefusedBy('rules')
    }
    return refusal === undefined
  }

  /** Id of the client's session, if there is one. */
  sessionId: string | undefined

  /** Sets the variables of expressions and the log entry for a message. */
  describe(method: string, item?: McpItem, args?: unknown): void {
    const session = this.sessionId
    if (item === undefined) this.#setDetails({ method, session })
    else {
      const { type, target, name } = item
      this.#setDetails({ method, target, type, item: name, session })
    }
    const make = () => valuesOf(method, session, item, args)
    this.client.learned.describeMcp(make)
    // The access log reads the exchange. Do not write to it once it may serve another request.
    if (!this.context.over && !this.#isPassedOn) this.context.exchange.learned.describeMcp(make)
  }

  /** Adds the version of the item to the log entry. */
  noteVersion(version: string | undefined): void {
    if (version === undefined || this.#details === undefined) return
    this.#setDetails({ ...this.#details, version })
  }

  /** Adds masked arguments to the log entry. */
  noteArguments(args: string | undefined): void {
    if (args === undefined || this.#details === undefined) return
    this.#setDetails({ ...this.#details, args })
  }

  /** Adds the feature that refused the message, or withheld a part of the response, to the log entry. */
  noteRefusedBy(refusedBy: RefusedBy): void {
    if (this.#details !== undefined) this.#setDetails({ ...this.#details, refusedBy })
  }

  /** The log entry of the message. */
  get details(): McpDetails | undefined {
    return this.#details
  }

  /** Adds the error code that the client gets to the log entry. */
  noteError(errorCode: number): void {
    if (this.#details !== undefined) this.#setDetails({ ...this.#details, errorCode })
  }

  /** Adds to the log entry that the response is an error, or that the tool has failed. */
  noteResponse(text: string): void {
    const code = errorCodeOf(text)
    if (code !== undefined) this.noteError(code)
    else if (this.#details?.type === 'tool' && isToolError(text)) {
      this.#setDetails({ ...this.#details, isToolError: true })
    }
  }

  #setDetails(details: McpDetails): void {
    const before = this.#details
    this.#details = details
    // The thread that received the request logs it.
    if (this.#isPassedOn) return
    this.notes.note(details, before)
  }

  /** Sets the variables of expressions for one item of a list. */
  describeListed(method: string, item: McpItem): void {
    const session = this.sessionId
    this.client.learned.describeMcp(() => valuesOf(method, session, item, undefined))
  }
}

/** Returns the variables of expressions for a message. `args` has the parsed arguments of its item. */
function valuesOf(
  method: string,
  session: string | undefined,
  item: McpItem | undefined,
  args: unknown,
): LearnedRecord {
  const common = {
    method,
    methodName: method,
    ...(session !== undefined && { sessionId: session }),
  }
  if (item === undefined) return common
  const { type, target } = item
  const withArguments = args !== undefined && { arguments: args as string }
  return { ...common, target, [type]: { ...itemValue(item), ...withArguments } }
}

/** Names an item in the record of a decision. URIs of resources are left out, as they may contain anything. */
export const itemText = ({ type, target, name }: McpItem): string =>
  `${type}${type === 'resource' ? '' : ` ${quoteInDetail(name)}`} of target ${target}`

const itemValue = ({ type, target, name }: McpItem): LearnedRecord => ({
  name,
  target,
  ...(type === 'resource' && { uri: name }),
})

const isPinned = ({ target }: McpTargetEntry): boolean => target.pinning === 'Block'

export function rulesIn({ policies }: BackendAccess): McpRules | undefined {
  return policies.steps.find(hasRules)?.mcp
}

/** Whether the policy has rules for items. */
export const hasRules = ({ mcp }: Step): boolean => mcp !== undefined
