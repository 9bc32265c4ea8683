/** What `backend.mcp` sets for calls of tools: guards, limits and approval. */
import {
  boolean,
  choice,
  integer,
  list,
  object,
  optional,
  required,
} from '../../../../ground/schema/field.ts'
import { atLeastOneOf } from '../../../../ground/schema/rules.ts'
import { backendObjectReference } from '../../../../ground/schema/shapes/references.ts'
import {
  celExpression,
  duration,
  longString,
  shortString,
} from '../../../../ground/schema/strings.ts'

export const toolGuard = object('MCPToolGuard', {
  matches: optional(
    list(longString, { max: 256 }),
    'Patterns to find in names, descriptions and schemas. If not set, phrases that give instructions to models, such as "ignore previous instructions".',
  ),
  hiddenCharacters: optional(boolean(), {
    doc: 'Whether invisible characters are a finding: zero-width and bidirectional characters, and tags.',
    default: true,
  }),
  action: optional(
    choice('MCPToolGuardAction', {
      Report: 'findings are recorded',
      Hide: 'clients also do not get the item, and calls of it are answered like those of unknown tools',
    }),
    { doc: 'What happens to a tool, prompt or resource with a finding.', default: 'Report' },
  ),
})

const repeats = object('MCPRepeatedCalls', {
  calls: required(
    integer({ min: 1, max: 1_000_000 }),
    'Maximum number of calls with the same tool and arguments.',
  ),
  unit: required(
    choice('MCPRepeatedCallsUnit', {
      Seconds: 'a second',
      Minutes: 'a minute',
      Hours: 'an hour',
    }),
    'Period in which the calls are counted.',
  ),
})

const circuitBreaker = object('MCPCircuitBreaker', {
  consecutiveFailures: required(
    integer({ min: 1, max: 1_000 }),
    'Failed calls in a row after which the target gets no calls for a time. Errors of tools do not count.',
  ),
  duration: optional(duration, {
    doc: 'How long the target gets no calls. The time grows with each further failure.',
    default: '30s',
  }),
})

export const callLimits = object(
  'MCPCallLimits',
  {
    maxResultSize: optional(
      integer({ min: 1_024, max: 33_554_432 }),
      'Maximum bytes of the result of a tool.',
    ),
    largeResults: optional(
      choice('MCPLargeResults', {
        Truncate: 'the result is cut, and a note at its end says so',
        Refuse: 'the client gets an error result instead',
      }),
      { doc: 'What happens to a larger result.', default: 'Truncate' },
    ),
    timeout: optional(
      duration,
      'Maximum time of a call. After it, the gateway cancels the call, and the client gets an error result.',
    ),
    repeats: optional(
      repeats,
      'Limits calls with the same tool and arguments in a session or, without a session, with the same credentials and headers.',
    ),
    recordArguments: optional(boolean(), {
      doc: 'Whether records, access log and spans have the arguments of tools (`gen_ai.tool.call.arguments`), masked by the regex guards of `promptGuard.request` whatever their action. Without such a guard, arguments are not recorded.',
      default: false,
    }),
    circuitBreaker: optional(circuitBreaker, 'Stops calls of a target for a time after failures.'),
  },
  {
    rules: [
      atLeastOneOf('maxResultSize', 'timeout', 'repeats', 'circuitBreaker', 'recordArguments'),
    ],
  },
)

export const approval = object(
  'MCPApproval',
  {
    annotated: optional(
      choice('MCPApprovalAnnotation', {
        Destructive: 'tools that the server calls destructive (destructiveHint)',
        NotReadOnly: 'all tools that the server does not call read-only (readOnlyHint)',
      }),
      'Tools whose calls need an approval, by their annotations.',
    ),
    tools: optional(
      list(shortString, { min: 1, max: 256 }),
      "Tools whose calls need an approval, by the server's own names.",
    ),
    when: optional(
      celExpression,
      'Expression that is true for calls that need an approval, such as `mcp.tool.arguments.amount > 100`. Calls for which it fails need one.',
    ),
    webhook: optional(
      backendObjectReference,
      'Service that approves calls. If not set, the client asks its user (elicitation); calls of clients that cannot ask are refused.',
    ),
    timeout: optional(duration, {
      doc: 'Maximum time for the approval. After it, the call is refused.',
      default: '60s',
    }),
  },
  { rules: [atLeastOneOf('annotated', 'tools', 'when')] },
)
