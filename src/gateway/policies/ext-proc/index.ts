import { parseDurationMs } from '../../../ground/base/duration.ts'
import { calledBackend } from '../../../ground/model/references.ts'
import {
  boolean,
  choice,
  type Infer,
  map,
  object,
  optional,
  required,
} from '../../../ground/schema/field.ts'
import { backendObjectReference } from '../../../ground/schema/shapes/references.ts'
import { celExpression, duration } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'
import type { ExtProcConfig } from './config.ts'

const expressions = map(celExpression, { max: 64 })

const bodyMode = choice('ExtProcBodyMode', {
  None: 'the body passes unseen',
  Streamed: 'in pieces, each of which waits for its answer',
  Buffered: 'as a whole; requests with larger bodies than the buffer get 413',
  BufferedPartial: 'as a whole, or the beginning of a larger body, whose rest passes unseen',
  FullDuplexStreamed: 'in pieces, while the processor streams another body back',
})
const partMode = choice('ExtProcPartMode', { Send: 'it is sent', Skip: 'it passes unseen' })
const body = { doc: 'How the body is sent.', default: 'FullDuplexStreamed' } as const
const headers = { doc: 'Whether the headers are sent.', default: 'Send' } as const
const trailers =
  'Whether trailers are sent. Default: Skip if the body mode is None, otherwise Send.'

const processingOptions = object('ExtProcProcessingOptions', {
  requestHeaderMode: optional(partMode, headers),
  requestBodyMode: optional(bodyMode, body),
  requestTrailerMode: optional(partMode, trailers),
  responseHeaderMode: optional(partMode, headers),
  responseBodyMode: optional(bodyMode, body),
  responseTrailerMode: optional(partMode, trailers),
  allowModeOverride: optional(boolean(), {
    doc: 'Whether mode_override in an answer to headers changes the modes of parts that have not begun.',
    default: false,
  }),
})
type Options = Infer<typeof processingOptions>

const extProcSchema = object('ExtProc', {
  backendRef: required(backendObjectReference, 'Service or GatewayBackend that processes.'),
  failureMode: optional(
    choice('ExtProcFailureMode', {
      FailClosed: 'the exchange fails with 500',
      FailOpen: 'messages that the processor has not changed yet pass, which is recorded',
    }),
    { doc: 'What happens if the processor fails.', default: 'FailClosed' },
  ),
  processingOptions: optional(
    processingOptions,
    'Which parts of messages are sent, and how. If not set, everything is sent, and the processor may override the modes.',
  ),
  metadataContext: optional(
    map(expressions, { max: 16 }),
    'Values sent in metadata_context, by filter and name. If not set, the claims of a verified JWT are sent as envoy.filters.http.jwt_authn.',
  ),
  requestAttributes: optional(expressions, 'Attributes sent with the headers of requests.'),
  responseAttributes: optional(expressions, 'Attributes sent with the headers of responses.'),
  messageTimeout: optional(duration, {
    doc: 'Maximum time to wait for an expected answer. A timeout of the backend takes precedence.',
    default: '10s',
  }),
  observabilityMode: optional(boolean(), {
    doc: 'Whether messages are only sent, and answers and failures of the processor are ignored.',
    default: false,
  }),
})

const bodyModes = {
  None: 'none',
  Streamed: 'streamed',
  Buffered: 'buffered',
  BufferedPartial: 'bufferedPartial',
  FullDuplexStreamed: 'fullDuplex',
} as const

function modesOf(options: Options): NonNullable<ExtProcConfig['modes']> {
  const message = (name: 'request' | 'response') => {
    const mode = options[`${name}BodyMode`] ?? 'FullDuplexStreamed'
    const trailerMode = options[`${name}TrailerMode`] ?? (mode === 'None' ? 'Skip' : 'Send')
    return {
      sendsHeaders: options[`${name}HeaderMode`] !== 'Skip',
      body: bodyModes[mode],
      sendsTrailers: trailerMode === 'Send',
    }
  }
  return {
    request: message('request'),
    response: message('response'),
    allowsOverride: options.allowModeOverride === true,
  }
}

/** Reports modes that skip trailers in full duplex mode, in which trailers mark the end of the body. */
function trailerProblems(options: Options): PolicyProblem[] {
  const modes = modesOf(options)
  return (['request', 'response'] as const).flatMap((name): PolicyProblem[] => {
    const { body: mode, sendsTrailers } = modes[name]
    if (mode !== 'fullDuplex' || sendsTrailers) return []
    const path = `processingOptions.${name}TrailerMode`
    return [{ path, message: `must be Send if ${name}BodyMode is FullDuplexStreamed` }]
  })
}

/**
 * Sends requests and responses to an external processor. If the processor cannot be resolved, all
 * requests that the policy applies to are rejected.
 */
export const extProc = definePolicy({
  section: 'traffic',
  field: 'extProc',
  schema: extProcSchema,
  doc: 'Lets an external processor change headers and bodies of requests and responses.',
  security: true,
  conditional: 'always one',
  preRouting: true,
  seesAllHeaders: true,
  expressions: [
    { path: 'responseAttributes', point: 'response' },
    { path: '', point: 'traffic', early: 'earlyAuthorization' },
  ],
  compile(spec, references) {
    const { backendRef, processingOptions: options, messageTimeout } = spec
    const target = calledBackend(references, backendRef)
    if (typeof target === 'string') return { problems: [{ path: 'backendRef', message: target }] }
    const problems = options === undefined ? [] : trailerProblems(options)
    if (problems.length > 0) return { problems }
    const timeoutMs = parseDurationMs(messageTimeout)
    const config: ExtProcConfig = {
      target,
      ...(spec.failureMode === 'FailOpen' && { failsOpen: true }),
      ...(options && { modes: modesOf(options) }),
      ...(spec.metadataContext && { metadata: spec.metadataContext }),
      ...(spec.requestAttributes && { requestAttributes: spec.requestAttributes }),
      ...(spec.responseAttributes && { responseAttributes: spec.responseAttributes }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(spec.observabilityMode === true && { observes: true }),
    }
    return { config, problems }
  },
  apply: () => import('./apply.ts'),
})
