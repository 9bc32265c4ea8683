/** Converts the HTTP routes of VirtualServices to rules. */
import { compact, type Fields, filled } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { escapePattern, type RoutePlan } from '../plan.ts'
import { corsFields } from '../targets.ts'

interface Scene {
  readonly plan: RoutePlan
  readonly namespace: string | undefined
}

/** Returns the rules of an HTTP route. Returns undefined, and reports it, if the route is left out. */
export function convertHttp(entry: SourceField, scene: Scene): Fields[] | undefined {
  entry.ignore('name')
  entry.get('delegate').lose('use route delegation of Sluice', 'route')
  const matches = entry
    .items('match')
    .map(matchOf)
    .filter((match) => match !== undefined)
  // Without any of its matches, the route would serve every request.
  if (entry.items('match').length > 0 && matches.length === 0) {
    entry.take()
    return undefined
  }
  entry.get('fault').lose('faults are not injected', 'lost')
  addPolicies(entry, scene.plan)
  const redirect = entry.get('redirect')
  const filters = [...headerFilters(entry.get('headers')), ...mirrors(entry, scene)]
  const shared = compact({ matches: filled(matches), timeouts: timeoutsOf(entry) })
  if (redirect.isSet) {
    return [
      { ...shared, filters: [{ type: 'RequestRedirect', requestRedirect: redirected(redirect) }] },
    ]
  }
  const backendRefs = entry.items('route').flatMap((route) => backendOf(route, scene))
  const rewrite = entry.get('rewrite')
  rewrite.get('uriRegexRewrite').lose('paths cannot be rewritten by a pattern', 'route')
  if (!rewrite.isSet) return [compact({ ...shared, filters: filled(filters), backendRefs })]
  const lists: (Fields | undefined)[] = matches.length === 0 ? [undefined] : matches
  return lists.map((match) => {
    const change = { type: 'URLRewrite', urlRewrite: rewritten(rewrite, match) }
    const own = match === undefined ? {} : { matches: [match] }
    return compact({ ...shared, ...own, filters: [...filters, change], backendRefs })
  })
}

/** Returns a text match as in the Gateway API; undefined if it is not set. An empty match accepts every value. */
function textMatch(field: SourceField): { type: string; value: string } | undefined {
  const exact = field.text('exact')
  if (exact !== undefined) return { type: 'Exact', value: exact }
  const regex = field.text('regex')
  if (regex !== undefined) return { type: 'RegularExpression', value: regex }
  const prefix = field.text('prefix')
  if (prefix !== undefined) {
    return { type: 'RegularExpression', value: `${escapePattern(prefix)}.*` }
  }
  return field.isSet ? { type: 'RegularExpression', value: '.*' } : undefined
}

const unsupported = [
  'withoutHeaders',
  'authority',
  'scheme',
  'port',
  'sourceLabels',
  'sourceNamespace',
  'gateways',
  'statPrefix',
]

/** Converts a match. Returns undefined, and reports it, if a condition cannot be converted: the rest would match too much. */
function matchOf(match: SourceField): Fields | undefined {
  match.ignore('name')
  if (match.flag('ignoreUriCase') === true)
    return match.refuse('route', 'paths are matched case-sensitively')
  for (const name of unsupported) {
    if (match.has(name)) {
      match.refuse('route', `${name} has no counterpart in matches`)
      return undefined
    }
  }
  const named = (list: string) =>
    filled(match.entries(list).map(([name, field]) => ({ name, ...textMatch(field) })))
  const method = match.get('method')
  if (method.isSet && method.text('exact') === undefined) {
    return match.refuse('route', 'a method can only be matched as a whole')
  }
  return compact({
    path: pathOf(match.get('uri')),
    method: method.text('exact'),
    headers: named('headers'),
    queryParams: named('queryParams'),
  })
}

function pathOf(uri: SourceField): Fields | undefined {
  const prefix = uri.text('prefix')
  if (prefix === undefined) return textMatch(uri)
  if (!prefix.endsWith('/')) {
    uri.report('changed', `matches ${prefix} and ${prefix}/…, but not ${prefix}… without a slash`)
  }
  return { type: 'PathPrefix', value: prefix.replace(/(.)\/+$/, '$1') }
}

function rewritten(rewrite: SourceField, match: Fields | undefined): Fields {
  const uri = rewrite.text('uri')
  const path = match?.path as { type: string } | undefined
  const isPrefix = path === undefined || path.type === 'PathPrefix'
  const change = isPrefix
    ? { type: 'ReplacePrefixMatch', replacePrefixMatch: uri }
    : { type: 'ReplaceFullPath', replaceFullPath: uri }
  return compact({ hostname: rewrite.text('authority'), path: uri && change })
}

function redirected(redirect: SourceField): Fields {
  redirect.get('derivePort').lose('the port is that of the scheme', 'lost')
  const uri = redirect.text('uri')
  return compact({
    scheme: redirect.text('scheme'),
    hostname: redirect.text('authority'),
    port: redirect.number('port'),
    path: uri && { type: 'ReplaceFullPath', replaceFullPath: uri },
    statusCode: redirect.number('redirectCode') ?? 301,
  })
}

function headerFilters(headers: SourceField): Fields[] {
  const kinds = [
    ['request', 'RequestHeaderModifier', 'requestHeaderModifier'],
    ['response', 'ResponseHeaderModifier', 'responseHeaderModifier'],
  ] as const
  return kinds.flatMap(([side, type, field]) => {
    const list = (name: string) =>
      filled(
        headers
          .at(side, name)
          .entries()
          .map(([key, value]) => ({ name: key, value: value.text() ?? '' })),
      )
    const change = compact({
      set: list('set'),
      add: list('add'),
      remove: headers.get(side).list('remove'),
    })
    return Object.keys(change).length > 0 ? [{ type, [field]: change }] : []
  })
}

function mirrors(entry: SourceField, scene: Scene): Fields[] {
  const share = entry.at('mirrorPercentage', 'value').number()
  const all = [
    ...(entry.has('mirror') ? [{ destination: entry.get('mirror'), percent: share ?? 100 }] : []),
    ...entry.items('mirrors').map((mirror) => ({
      destination: mirror.get('destination'),
      percent: mirror.at('percentage', 'value').number() ?? 100,
    })),
  ]
  return all.flatMap(({ destination, percent }) => {
    const backendRef = destinationOf(destination, scene)
    if (backendRef === undefined) return []
    const part = Number.isInteger(percent)
      ? { percent }
      : { fraction: { numerator: Math.round(percent * 1_000), denominator: 100_000 } }
    return [{ type: 'RequestMirror', requestMirror: { backendRef, ...part } }]
  })
}

function backendOf(route: SourceField, scene: Scene): Fields[] {
  const ref = destinationOf(route.get('destination'), scene)
  if (ref === undefined) return []
  const filters = headerFilters(route.get('headers'))
  return [compact({ ...ref, weight: route.number('weight'), filters: filled(filters) })]
}

/** Returns a reference to a Service, which is named by its short or full name. */
function destinationOf(destination: SourceField, { namespace }: Scene): Fields | undefined {
  const host = destination.text('host') ?? ''
  const port = destination.at('port', 'number').number()
  destination
    .get('subset')
    .lose('all endpoints of the Service get requests; write a Service for the subset', 'route')
  const [name = '', given, service] = host.split('.')
  if (given !== undefined && service !== 'svc') {
    return destination.refuse('route', `${host} is not a Service; write a GatewayBackend`)
  }
  if (port === undefined) return destination.refuse('route', 'names no port of the Service')
  if (given !== undefined && given !== namespace) {
    destination.report('changed', `needs a ReferenceGrant in namespace ${given}`)
  }
  return compact({ name, namespace: given === namespace ? undefined : given, port })
}

function timeoutsOf(entry: SourceField): Fields | undefined {
  const request = entry.text('timeout')
  const backendRequest = entry.at('retries', 'perTryTimeout').text()
  return filled(compact({ request, backendRequest }))
}

function addPolicies(entry: SourceField, plan: RoutePlan): void {
  const cors = entry.get('corsPolicy')
  if (cors.isSet) {
    const origins = cors.items('allowOrigins').flatMap((origin) => {
      const exact = origin.text('exact')
      return (
        exact ??
        origin.refuse(
          'stricter',
          'origins that are patterns cannot be converted, and are not allowed',
        ) ??
        []
      )
    })
    plan.traffic.cors = compact({ ...corsFields(cors), allowOrigins: origins })
  }
  const retries = entry.get('retries')
  const attempts = retries.number('attempts')
  retries
    .get('retryOn')
    .lose('a request is retried only if the failed attempt had no effect', 'lost')
  retries.ignore('perTryTimeout', 'retryRemoteLocalities')
  if (attempts !== undefined) plan.traffic.retry = { attempts }
  const direct = entry.get('directResponse')
  if (direct.isSet) {
    plan.traffic.directResponse = compact({
      status: direct.number('status'),
      body: direct.at('body', 'string').text(),
    })
  }
}
