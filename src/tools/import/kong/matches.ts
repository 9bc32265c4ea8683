/** Reads what a Kong route matches. */
import { compact, type Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { escapePattern } from '../plan.ts'

interface RouteMatches {
  readonly hostnames: readonly string[] | undefined
  /** One entry for each path, since paths are rewritten in different ways. */
  readonly matches: readonly {
    readonly match: readonly Fields[]
    readonly rewrite: Fields | undefined
  }[]
}

/** Hosts, paths, methods and headers of a route; undefined if it cannot be an HTTPRoute. */
export function matchesOf(
  route: SourceField,
  servicePath: string | undefined,
): RouteMatches | undefined {
  const protocols = route.texts('protocols')
  if (protocols.length > 0 && !protocols.some((protocol) => /^(http|grpc)s?$/.test(protocol))) {
    return route.refuse('route', `routes for ${protocols.join(', ')} are not converted`)
  }
  if (protocols.length > 0 && protocols.every((protocol) => protocol.endsWith('s'))) {
    const reason = 'the route accepts HTTPS only; add an HTTPS listener with your certificate'
    route.get('protocols').report('protection', reason)
  }
  route.ignore('https_redirect_status_code')
  const priority = route.get('regex_priority')
  if ((priority.number() ?? 0) !== 0) {
    priority.report('changed', 'the order of patterns is that of their lengths')
  }
  const strips = route.flag('strip_path') !== false
  const paths = route.items('paths')
  const conditions = conditionsOf(route)
  const prefix = (servicePath ?? '').replace(/\/+$/, '')
  const fields = paths.length > 0 ? paths : [undefined]
  const matches = fields.flatMap((field) => {
    const path = field?.text() ?? '/'
    const isPattern = path.startsWith('~')
    if (field !== undefined && isPattern && (strips || prefix !== '')) {
      field.report('changed', 'a path that a pattern matches is not rewritten')
    }
    if (field !== undefined && !isPattern && !path.endsWith('/')) {
      field.report('changed', `matches ${path} and ${path}/…, but not ${path}… without a slash`)
    }
    const rewrite = isPattern ? undefined : rewriteOf(path, prefix, strips)
    const match = conditions.map((condition) => compact({ path: pathMatch(path), ...condition }))
    return [{ match, rewrite }]
  })
  return { hostnames: hostnamesOf(route), matches }
}

/** Kong compares patterns with the start of the path. */
function pathMatch(path: string): Fields {
  if (!path.startsWith('~')) return { type: 'PathPrefix', value: path.replace(/(.)\/+$/, '$1') }
  const pattern = path.slice(1).replace(/^\^/, '')
  const value = pattern.endsWith('$') ? pattern.slice(0, -1) : `${pattern}.*`
  return { type: 'RegularExpression', value }
}

function rewriteOf(path: string, prefix: string, strips: boolean): Fields | undefined {
  const plain = path.replace(/\/+$/, '')
  const target = strips ? prefix : `${prefix}${plain}`
  if (target === plain) return undefined
  const change = { type: 'ReplacePrefixMatch', replacePrefixMatch: target === '' ? '/' : target }
  return { type: 'URLRewrite', urlRewrite: { path: change } }
}

/** Every combination of methods and headers. */
function conditionsOf(route: SourceField): Fields[] {
  const methods = route.texts('methods')
  const headers = route.entries('headers').map(([name, field]) => headerMatch(name, field.texts()))
  route.get('snis').lose('server names are chosen by listeners')
  route.get('sources').lose('addresses of clients do not choose routes')
  route.get('destinations').lose('addresses do not choose routes')
  const common = headers.length > 0 ? { headers } : {}
  return methods.length > 0 ? methods.map((method) => ({ method, ...common })) : [common]
}

function headerMatch(name: string, values: readonly string[]): Fields {
  const [value = '', ...others] = values
  if (others.length === 0 && value.startsWith('~*')) {
    return { type: 'RegularExpression', name, value: value.slice(2) }
  }
  if (others.length === 0) return { name, value }
  return { type: 'RegularExpression', name, value: values.map(escapePattern).join('|') }
}

function hostnamesOf(route: SourceField): string[] | undefined {
  const hosts = route.items('hosts')
  if (hosts.length === 0) return undefined
  return hosts.flatMap((field) => {
    const host = (field.text() ?? '').replace(/:\d+$/, '').toLowerCase()
    if (/^(\*\.)?[a-z0-9.-]+$/.test(host)) return [host]
    field.report('lost', 'a wildcard must be the first label of a host name')
    return []
  })
}
