import { parseDurationMs } from '../../../ground/base/duration.ts'
import {
  choice,
  type Infer,
  list,
  object,
  optional,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { httpMethods } from '../../../ground/schema/shapes/cors.ts'
import { headerValue, matchType } from '../../../ground/schema/shapes/headers.ts'
import { retryRule } from '../../../ground/schema/shapes/retry.ts'
import { durationOrZero, plainHeaderName, sectionName } from '../../../ground/schema/strings.ts'
import {
  matchBudget,
  requestHostnames,
  routeFields,
  uniqueRuleNames,
  weightedBackendRules,
  weightedFields,
} from './common.ts'
import { httpFilters } from './filters.ts'
import { sessionPersistence } from './session-persistence.ts'

interface PathValue {
  readonly type?: string
  readonly value?: string
}

const pathCharacters = /^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$/

/** A rule for Exact and PathPrefix paths; regular expressions are not checked. */
const literalPath = (message: string, holds: (value: string) => boolean) =>
  rule<PathValue>({
    message: `${message} when type is Exact or PathPrefix`,
    holds: ({ type, value }) => type === 'RegularExpression' || holds(value ?? '/'),
    at: 'value',
  })

const pathMatch = object(
  'HTTPPathMatch',
  {
    type: optional(
      choice('PathMatchType', {
        Exact: 'the whole path is equal',
        PathPrefix: 'the path begins with these segments',
        RegularExpression: 'the pattern matches the whole path',
      }),
      { doc: 'How value is compared.', fill: 'PathPrefix' },
    ),
    value: optional(text({ max: 1024 }), { doc: 'Path.', fill: '/' }),
  },
  {
    rules: [
      literalPath("value must be an absolute path and start with '/'", (v) => v.startsWith('/')),
      ...['//', '/./', '/../', '%2f', '%2F', '#'].map((part) =>
        literalPath(`value must not contain '${part}'`, (v) => !v.includes(part)),
      ),
      ...['/..', '/.'].map((end) =>
        literalPath(`value must not end with '${end}'`, (v) => !v.endsWith(end)),
      ),
      literalPath('value must only contain valid path characters', (v) => pathCharacters.test(v)),
    ],
  },
)

const headerMatch = object('HTTPHeaderMatch', {
  type: optional(matchType, { doc: 'How value is compared.', fill: 'Exact' }),
  name: required(plainHeaderName, 'Field name; case does not matter.'),
  value: required(headerValue, 'Value or pattern.'),
})

const queryMatch = object('HTTPQueryParamMatch', {
  type: optional(matchType, { doc: 'How value is compared.', fill: 'Exact' }),
  name: required(plainHeaderName, 'Parameter name.'),
  value: required(text({ min: 1, max: 1024 }), 'Value or pattern.'),
})
export type NamedMatchSpec = Infer<typeof queryMatch>

const anyPath = { type: 'PathPrefix', value: '/' }

const routeMatch = object('HTTPRouteMatch', {
  path: optional(pathMatch, { doc: 'Path.', fill: anyPath }),
  headers: optional(list(headerMatch, { max: 16, unique: { by: ['name'] } }), 'Headers.'),
  queryParams: optional(
    list(queryMatch, { max: 16, unique: { by: ['name'] } }),
    'Query parameters.',
  ),
  method: optional(choice('HTTPMethod', httpMethods), 'Method.'),
})
export type HttpMatchSpec = Infer<typeof routeMatch>

const timeouts = object(
  'HTTPRouteTimeouts',
  {
    request: optional(durationOrZero, 'For the whole request; 0s means no limit.'),
    backendRequest: optional(durationOrZero, 'For one attempt; 0s means no limit.'),
  },
  {
    rules: [
      rule<{ readonly request?: string; readonly backendRequest?: string }>({
        message: 'backendRequest timeout cannot be longer than request timeout',
        holds: ({ request, backendRequest }) => {
          const whole = parseDurationMs(request ?? '') ?? 0
          return whole === 0 || (parseDurationMs(backendRequest ?? '') ?? 0) <= whole
        },
        at: 'backendRequest',
      }),
    ],
  },
)

interface Filter {
  readonly requestRedirect?: { readonly path?: { readonly type: string } }
  readonly urlRewrite?: { readonly path?: { readonly type: string } }
}

interface RuleValue {
  readonly matches?: readonly { readonly path?: PathValue }[]
  readonly filters?: readonly Filter[]
  readonly backendRefs?: readonly { readonly filters?: readonly Filter[] }[]
}

/** Whether the rule matches exactly one path prefix. A rule without matches or path has the prefix `/`. */
function hasOnePrefix({ matches }: RuleValue): boolean {
  if (matches === undefined) return true
  const [only, ...others] = matches
  if (only === undefined || others.length > 0) return false
  return (only.path?.type ?? 'PathPrefix') === 'PathPrefix'
}

const replacesPrefix = (member: 'requestRedirect' | 'urlRewrite') => (filter: Filter) =>
  filter[member]?.path?.type === 'ReplacePrefixMatch'

const prefixRules = (['requestRedirect', 'urlRewrite'] as const).flatMap((member) => {
  const what = member === 'urlRewrite' ? 'URLRewrite' : 'RequestRedirect'
  const message = `when using ${what} filter with path.replacePrefixMatch, exactly one PathPrefix match must be specified`
  return [
    rule<RuleValue>({
      message,
      holds: (value) => !(value.filters ?? []).some(replacesPrefix(member)) || hasOnePrefix(value),
    }),
    rule<RuleValue>({
      message: `within backendRefs, ${message}`,
      holds: (value) =>
        !(value.backendRefs ?? []).some((ref) =>
          (ref.filters ?? []).some(replacesPrefix(member)),
        ) || hasOnePrefix(value),
    }),
  ]
})

const routeRule = object(
  'HTTPRouteRule',
  {
    name: optional(sectionName, 'Name, for sectionName of policies.'),
    matches: optional(list(routeMatch, { max: 64 }), {
      doc: 'Any of these.',
      fill: [{ path: anyPath }],
    }),
    filters: optional(httpFilters, 'Changes to requests and responses.'),
    backendRefs: optional(
      list(
        object(
          'HTTPBackendRef',
          { ...weightedFields, filters: optional(httpFilters, 'For this backend only.') },
          { rules: weightedBackendRules },
        ),
        { max: 16 },
      ),
      'Where requests go, by weight.',
    ),
    timeouts: optional(timeouts, 'Deadlines.'),
    retry: optional(retryRule, { doc: 'Sends failed requests again (experimental).' }),
    sessionPersistence: optional(sessionPersistence, {
      doc: 'Keeps a client at one backend (experimental).',
    }),
  },
  {
    rules: [
      rule<RuleValue>({
        message: 'RequestRedirect filter must not be used together with backendRefs',
        holds: ({ filters, backendRefs }) =>
          (backendRefs ?? []).length === 0 ||
          !(filters ?? []).some(({ requestRedirect }) => requestRedirect !== undefined),
      }),
      ...prefixRules,
    ],
  },
)
export type HttpRuleSpec = Infer<typeof routeRule>

export const httpRouteSpec = object('HTTPRouteSpec', {
  ...routeFields,
  hostnames: requestHostnames,
  rules: optional(list(routeRule, { min: 1, max: 16, rules: [matchBudget, uniqueRuleNames] }), {
    doc: 'What happens to requests.',
    fill: [{ matches: [{ path: anyPath }] }],
  }),
})
export type HttpRouteSpec = Infer<typeof httpRouteSpec>
