/** One message of an MCP client, with the request that brought it and the backend that it came to. */
import { isCredentialName } from '../../../base/credential-names.ts'
import { GatewayError } from '../../../errors/index.ts'
import type { LearnedRecord } from '../../../exchange/learned.ts'
import type { McpItem, McpRules } from '../../../exchange/mcp.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { RulePlacement } from '../../../proxy/config/placement.ts'
import type { CompiledBackend } from '../../../proxy/config/rules.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { principalOf } from '../principal.ts'
import { ClientView } from './client-view.ts'
import type { McpHub } from './hub.ts'
import type { McpFacts } from './mcp-record.ts'
import type { McpBackend, McpTargetEntry } from './mcp-targets.ts'
import { targetPart } from './resolve-mcp-target.ts'

function viewOf(context: RequestContext): ClientView {
  const credentials = [...context.exchange.receivedNames()].filter(isCredentialName)
  return ClientView.of(context.exchange, credentials, () => context.over)
}

/** What a request notes for the end of its exchange. */
interface McpNotes {
  /** One for each message, for the log. */
  readonly messages: McpFacts[]
  /** Sets what is done when the exchange is over. */
  onClose(close: () => void): void
}

export class McpExchange {
  readonly context: RequestContext
  readonly runtime: GatewayRuntime
  readonly hub: McpHub
  readonly notes: McpNotes
  readonly placement: RulePlacement
  readonly chosen: CompiledBackend
  /** The request as policies and targets see it, whatever becomes of the exchange itself. */
  readonly client: ClientView
  /** Another thread received the request: the context is that of the client's stream. */
  readonly #isPassedOn: boolean
  #facts: McpFacts | undefined

  constructor(
    context: RequestContext,
    runtime: GatewayRuntime,
    hub: McpHub,
    notes: McpNotes,
    client = viewOf(context),
    isPassedOn = false,
  ) {
    const { placement, backend } = context
    if (placement === undefined || backend === undefined) throw new GatewayError('no_backends')
    this.context = context
    this.runtime = runtime
    this.hub = hub
    this.notes = notes
    this.placement = placement
    this.chosen = backend
    this.client = client
    this.#isPassedOn = isPassedOn
  }

  /** The same request for one message of its batch: each is judged and logged by itself. */
  forMessage(): McpExchange {
    const { client } = this
    const copy = ClientView.of(client, client.credentials, () => client.isOver)
    return this.#with(copy, this.#isPassedOn)
  }

  /** For a message of the same client whose request another thread has received. */
  passedOn(client: ClientView): McpExchange {
    return this.#with(client, true)
  }

  #with(client: ClientView, isPassedOn: boolean): McpExchange {
    return new McpExchange(this.context, this.runtime, this.hub, this.notes, client, isPassedOn)
  }

  /** A digest of who the client is; undefined if no credentials were verified. */
  get principal(): string | undefined {
    return principalOf(this.client)
  }

  /** As it is now: a stream may outlive what the backend was when it began. */
  get backend(): McpBackend {
    const found = this.hub.backends.find(this.chosen.name)
    if (found === undefined) throw new GatewayError('backend_invalid', this.chosen.name)
    return found
  }

  /** `namespace/name`. */
  get name(): string {
    return this.chosen.name
  }

  /** What holds for a target. */
  accessOf(entry: McpTargetEntry): BackendAccess {
    return this.placement.backend(entry.named, () => targetPart(this.runtime, entry))
  }

  /** What holds for all of the backend. */
  get access(): BackendAccess {
    return this.placement.backend(this.chosen, () => wholeBackend)
  }

  rulesOf(entry: McpTargetEntry): McpRules | undefined {
    return rulesIn(this.accessOf(entry))
  }

  /** Does anybody look at what items are used with? To read it costs as much as to read the message. */
  tellsArguments(entry: McpTargetEntry): boolean {
    const { accessLog, tracing } = this.context.observers
    return accessLog !== undefined || tracing !== undefined || this.rulesOf(entry) !== undefined
  }

  /** May the client use it? `args`: JSON value of what it is used with. */
  mayUse(entry: McpTargetEntry, method: string, item: McpItem, args: unknown): boolean {
    const rules = this.rulesOf(entry)
    this.tell(method, item, args)
    const use = { method, item, isListed: false }
    return rules === undefined || rules.allows(this.client, use)
  }

  /** Session of the client; absent where there is none. */
  sessionId: string | undefined

  /** Tells expressions what the client is at. */
  tell(method: string, item?: McpItem, args?: unknown): void {
    const common = {
      method,
      methodName: method,
      ...(this.sessionId !== undefined && { sessionId: this.sessionId }),
    }
    if (item === undefined) {
      this.#learn(common)
      this.#note({ method })
      return
    }
    const { type, target, name } = item
    this.#note({ method, target, type, item: name })
    const what = {
      name,
      target,
      ...(type === 'resource' && { uri: name }),
      ...(args !== undefined && { arguments: args as string }),
    }
    this.#learn({ ...common, target, [type]: what })
  }

  /** What the log says of the message. */
  get facts(): McpFacts | undefined {
    return this.#facts
  }

  #note(facts: McpFacts): void {
    const session = this.sessionId
    this.#setFacts({ ...facts, ...(session !== undefined && { session }) })
  }

  /** The client gets an error of this code. */
  noteError(errorCode: number): void {
    if (this.#facts !== undefined) this.#setFacts({ ...this.#facts, errorCode })
  }

  #setFacts(facts: McpFacts): void {
    const before = this.#facts
    this.#facts = facts
    // The thread that received the request logs it.
    if (this.#isPassedOn) return
    const all = this.notes.messages
    const at = before === undefined ? -1 : all.indexOf(before)
    if (at < 0) all.push(facts)
    else all[at] = facts
  }

  /** Tells rules of an item in a list. */
  show(method: string, { type, target, name }: McpItem): void {
    const what = { name, target, ...(type === 'resource' && { uri: name }) }
    const session = this.sessionId !== undefined && { sessionId: this.sessionId }
    this.client.learned.mcp = { method, methodName: method, ...session, target, [type]: what }
  }

  #learn(mcp: LearnedRecord): void {
    this.client.learned.mcp = mcp
    // The access log reads the exchange, which may be another request's once this one is over.
    if (!this.context.over && !this.#isPassedOn) this.context.exchange.learned.mcp = mcp
  }
}

const wholeBackend = { sections: [], needsTls: false }

export function rulesIn({ policies }: BackendAccess): McpRules | undefined {
  return policies.steps.find((step) => step.mcp !== undefined)?.mcp
}
