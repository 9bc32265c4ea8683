/** Steps that read variables, and the names of the gateway's variables. */
import { CelError, isCelError } from './error.ts'
import type { Activation, Step } from './frame.ts'
import { type CelResult, CelView } from './value.ts'

/** The fields of each variable or field, by name; undefined if it may have any field. */
export type Variables = ReadonlyMap<string, Fields | undefined>
type Fields = Variables

const fieldsOf = (names: string): Fields =>
  new Map(names.split(' ').map((name) => [name, undefined]))

/** Fields of `mcp` in rules about one item: of `tool`, `prompt` and `resource`, only one is set. */
export const mcpRuleFields: Fields = new Map<string, Fields | undefined>([
  ...fieldsOf('method methodName sessionId target'),
  ['tool', fieldsOf('name target arguments')],
  ['prompt', fieldsOf('name target arguments')],
  ['resource', fieldsOf('name uri target')],
])

/** Fields of `llm`; docs/ai.md lists them. */
const llmFields: Fields = new Map([
  ...fieldsOf('requestModel responseModel provider streaming serviceTier'),
  ...fieldsOf('inputTokens outputTokens totalTokens providerInputTokens countTokens'),
  ...fieldsOf('cachedInputTokens cacheCreationInputTokens reasoningTokens'),
  ...fieldsOf('inputTextTokens inputImageTokens inputAudioTokens'),
  ...fieldsOf('outputTextTokens outputImageTokens outputAudioTokens'),
  ...fieldsOf('timeToFirstToken timePerOutputToken params prompt completion toolCalls'),
])

/** Every variable of the gateway; one that is not set reads as null. */
export const gatewayVariables: Variables = new Map<string, Fields | undefined>([
  [
    'request',
    fieldsOf(
      'method uri host scheme path pathAndQuery version headers body bodyPrefix startTime endTime',
    ),
  ],
  ['response', fieldsOf('code grpcStatus headers body bodyPrefix')],
  [
    'source',
    fieldsOf(
      'address port rawAddress rawPort identity subjectAltNames issuer subject subjectCn spiffeId certificate unverifiedWorkload connectHeaders',
    ),
  ],
  ['destination', fieldsOf('address port hostname')],
  ['backend', fieldsOf('name type protocol')],
  ['basicAuth', fieldsOf('username')],
  ['jwt', undefined],
  ['apiKey', undefined],
  ['extauthz', undefined],
  ['extproc', undefined],
  ['env', fieldsOf('podName namespace gateway')],
  [
    'proxy',
    new Map<string, Fields | undefined>([
      ['gateway', fieldsOf('namespace name')],
      ['listener', fieldsOf('name')],
      ['route', fieldsOf('namespace name rule')],
    ]),
  ],
  ['metadata', undefined],
  ['llm', llmFields],
  ['llmRequest', undefined],
  ['mcp', new Map([...mcpRuleFields, ['tool', fieldsOf('name target arguments result error')]])],
])

/** Reads a variable. One that is not set is null if it is declared, otherwise an error of kind `missing`. */
export function variableStep(name: string, isDeclared: boolean): Step {
  const unset = isDeclared ? null : new CelError('missing', `there is no variable ${name}`)
  return (frame) => {
    const value = frame.activation.lookup(name)
    return value === undefined ? unset : value
  }
}

/** `variables()` returns all variables that are set, as one map. */
export function variablesStep(): Step {
  return (frame) => new VariablesView(frame.activation)
}

class VariablesView extends CelView {
  readonly #activation: Activation

  constructor(activation: Activation) {
    super()
    this.#activation = activation
  }

  override field(name: string): CelResult | undefined {
    return this.#activation.lookup(name)
  }

  override fieldNames(): readonly string[] {
    const names = this.#activation.names?.() ?? [...gatewayVariables.keys()]
    return names.filter((name) => {
      const value = this.field(name)
      return value !== undefined && !isCelError(value)
    })
  }
}

/** Creates an activation from plain data: own properties of the record are the variables. */
export function activationOf(record: Readonly<Record<string, CelResult>>): Activation {
  return {
    lookup: (name) => (Object.hasOwn(record, name) ? record[name] : undefined),
    names: () => Object.keys(record),
  }
}
