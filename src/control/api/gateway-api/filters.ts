/** Filters of HTTPRoute and GRPCRoute rules. */
import {
  type AnyProperty,
  choice,
  type Infer,
  integer,
  integerChoice,
  list,
  object,
  optional,
  type Rule,
  required,
  text,
} from '../../../ground/schema/field.ts'
import { rule } from '../../../ground/schema/rules.ts'
import { corsFields } from '../../../ground/schema/shapes/cors.ts'
import { httpHeaderFilter } from '../../../ground/schema/shapes/headers.ts'
import { portNumber } from '../../../ground/schema/shapes/references.ts'
import { preciseHostname } from '../../../ground/schema/strings.ts'
import { backendObjectRef, localRef } from './common.ts'

type Members = Readonly<Record<string, unknown>>

/** Requires `member` if the field `by` has the given value, and forbids it otherwise. */
const selectedBy = (by: 'type' | 'protocol', value: string, member: string) => [
  rule<Members>({
    message: `${member} must be specified when ${by} is set to '${value}'`,
    holds: (union) => union[by] !== value || union[member] !== undefined,
  }),
  rule<Members>({
    message: `${by} must be '${value}' when ${member} is set`,
    holds: (union) => union[member] === undefined || union[by] === value,
  }),
]

const pathModifier = object(
  'HTTPPathModifier',
  {
    type: required(
      choice('HTTPPathModifierType', {
        ReplaceFullPath: 'the whole path is replaced',
        ReplacePrefixMatch: 'the matched prefix is replaced',
      }),
      'What is replaced.',
    ),
    replaceFullPath: optional(text({ max: 1024 }), 'New path.'),
    replacePrefixMatch: optional(text({ max: 1024 }), 'New prefix.'),
  },
  {
    rules: [
      ...selectedBy('type', 'ReplaceFullPath', 'replaceFullPath'),
      ...selectedBy('type', 'ReplacePrefixMatch', 'replacePrefixMatch'),
    ],
  },
)
export type HttpPathModifier = Infer<typeof pathModifier>

const requestRedirect = object('HTTPRequestRedirectFilter', {
  scheme: optional(choice('RedirectScheme', { http: '', https: '' }), 'Scheme of Location.'),
  hostname: optional(preciseHostname, 'Host of Location.'),
  path: optional(pathModifier, 'Path of Location.'),
  port: optional(portNumber, 'Port of Location.'),
  statusCode: optional(integerChoice(301, 302, 303, 307, 308), { doc: 'Status.', fill: 302 }),
})

const urlRewrite = object('HTTPURLRewriteFilter', {
  hostname: optional(preciseHostname, 'New host.'),
  path: optional(pathModifier, 'New path.'),
})

const fraction = object(
  'Fraction',
  {
    numerator: required(integer({ min: 0 }), 'Part.'),
    denominator: optional(integer({ min: 1 }), { doc: 'Whole.', fill: 100 }),
  },
  {
    rules: [
      rule<{ readonly numerator: number; readonly denominator?: number }>({
        message: 'numerator must be less than or equal to denominator',
        holds: ({ numerator, denominator }) => numerator <= (denominator ?? 100),
      }),
    ],
  },
)

const requestMirror = object(
  'HTTPRequestMirrorFilter',
  {
    backendRef: required(backendObjectRef, 'Where copies go.'),
    percent: optional(integer({ min: 0, max: 100 }), 'Share of requests; all if not set.'),
    fraction: optional(fraction, 'Share of requests; all if not set.'),
  },
  {
    rules: [
      rule<{ readonly percent?: number; readonly fraction?: object }>({
        message: 'only one of percent or fraction may be specified',
        holds: ({ percent, fraction: part }) => percent === undefined || part === undefined,
      }),
    ],
  },
)

const headerNames = list(text({ max: 256 }), { max: 64, unique: 'value' })

/** HTTPExternalAuthFilter. */
export const externalAuth = object(
  'HTTPExternalAuthFilter',
  {
    protocol: required(choice('ExternalAuthProtocol', { HTTP: '', GRPC: '' }), 'Protocol.'),
    backendRef: required(backendObjectRef, 'Service that is asked.'),
    grpc: optional(
      object('GRPCAuthConfig', { allowedHeaders: optional(headerNames, 'Headers that are sent.') }),
      'Settings for GRPC.',
    ),
    http: optional(
      object('HTTPAuthConfig', {
        path: optional(
          text({
            max: 1024,
            pattern: "^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$",
            expects: 'a path',
          }),
          'Prefix of the path that is asked.',
        ),
        allowedHeaders: optional(headerNames, 'Headers that are sent.'),
        allowedResponseHeaders: optional(headerNames, 'Headers that are taken over.'),
      }),
      'Settings for HTTP.',
    ),
    forwardBody: optional(
      object('ForwardBodyConfig', { maxSize: optional(integer(), 'Most bytes that are sent.') }),
      'Sends the body too.',
    ),
  },
  { rules: [...selectedBy('protocol', 'GRPC', 'grpc'), ...selectedBy('protocol', 'HTTP', 'http')] },
)

const corsMaxAge = optional(integer({ min: 1 }), { doc: 'Seconds.', fill: 5 })

/** The member of the filter union that each filter type selects. */
const members = {
  RequestHeaderModifier: ['requestHeaderModifier', httpHeaderFilter],
  ResponseHeaderModifier: ['responseHeaderModifier', httpHeaderFilter],
  RequestMirror: ['requestMirror', requestMirror],
  RequestRedirect: ['requestRedirect', requestRedirect],
  URLRewrite: ['urlRewrite', urlRewrite],
  ExtensionRef: ['extensionRef', localRef],
  CORS: ['cors', object('HTTPCORSFilter', { ...corsFields, maxAge: corsMaxAge })],
  ExternalAuth: ['externalAuth', externalAuth],
} as const

type FilterValue = Members & { readonly type: string }

/** Rules that a filter must have the member that its `type` selects, and no other member. */
function unionRules(types: readonly (keyof typeof members)[]): readonly Rule[] {
  return types.flatMap((type) => {
    const [member] = members[type]
    return [
      rule<FilterValue>({
        message: `${member} must not be set if the filter type is not ${type}`,
        holds: (filter) => filter[member] === undefined || filter.type === type,
        at: member,
      }),
      rule<FilterValue>({
        message: `${member} must be specified for filter type ${type}`,
        holds: (filter) => filter[member] !== undefined || filter.type !== type,
        at: member,
      }),
    ]
  })
}

const once = (type: string): Rule =>
  rule<readonly FilterValue[]>({
    message: `${type} filter cannot be repeated`,
    holds: (filters) => filters.filter((filter) => filter.type === type).length <= 1,
  })

const httpFilter = object(
  'HTTPRouteFilter',
  {
    type: required(
      choice('HTTPRouteFilterType', {
        RequestHeaderModifier: '',
        ResponseHeaderModifier: '',
        RequestMirror: '',
        RequestRedirect: '',
        URLRewrite: '',
        ExtensionRef: '',
        CORS: '',
        ExternalAuth: '',
      }),
      'Which member is set.',
    ),
    requestHeaderModifier: optional(httpHeaderFilter, 'Changes request headers.'),
    responseHeaderModifier: optional(httpHeaderFilter, 'Changes response headers.'),
    requestMirror: optional(requestMirror, 'Copies requests.'),
    requestRedirect: optional(requestRedirect, 'Redirects.'),
    urlRewrite: optional(urlRewrite, 'Rewrites host and path.'),
    extensionRef: optional(localRef, 'A filter of an implementation.'),
    cors: optional(members.CORS[1], 'Answers cross-origin requests.'),
    externalAuth: optional(externalAuth, {
      doc: 'Asks an authorization service (experimental).',
      security: true,
    }),
  },
  { rules: unionRules(Object.keys(members) as (keyof typeof members)[]) },
)
export type HttpFilter = Infer<typeof httpFilter>

export const httpFilters = list(httpFilter, {
  max: 16,
  rules: [
    rule<readonly FilterValue[]>({
      message: 'may specify either RequestRedirect or URLRewrite, but not both',
      holds: (filters) => {
        const types = new Set(filters.map(({ type }) => type))
        return !(types.has('RequestRedirect') && types.has('URLRewrite'))
      },
    }),
    ...[
      'CORS',
      'RequestHeaderModifier',
      'ResponseHeaderModifier',
      'RequestRedirect',
      'URLRewrite',
    ].map(once),
  ],
})

const grpcFilter = object(
  'GRPCRouteFilter',
  {
    type: required(
      choice('GRPCRouteFilterType', {
        RequestHeaderModifier: '',
        ResponseHeaderModifier: '',
        RequestMirror: '',
        ExtensionRef: '',
      }),
      'Which member is set.',
    ),
    requestHeaderModifier: optional(httpHeaderFilter, 'Changes request headers.'),
    responseHeaderModifier: optional(httpHeaderFilter, 'Changes response headers.'),
    requestMirror: optional(requestMirror, 'Copies requests.'),
    extensionRef: optional(localRef, 'A filter of an implementation.'),
  } satisfies Record<string, AnyProperty>,
  {
    rules: unionRules([
      'RequestHeaderModifier',
      'ResponseHeaderModifier',
      'RequestMirror',
      'ExtensionRef',
    ]),
  },
)

export const grpcFilters = list(grpcFilter, {
  max: 16,
  rules: ['RequestHeaderModifier', 'ResponseHeaderModifier'].map(once),
})
