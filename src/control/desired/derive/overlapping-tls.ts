/**
 * Finds listeners on one port whose hostnames overlap although each has its own TLS configuration. A
 * client that reuses a connection of one may request a hostname of the other (Gateway API,
 * ListenerConditionOverlappingTLSConfig; RFC 9110 7.4).
 */
import type { Failure } from '../conditions.ts'
import { isUsable, type ListenerCandidate, type ListenerView } from './listeners.ts'

/**
 * Returns the overlap of each listener that has one, by listener key. `views` are the listeners after
 * conflict detection; those that lost a conflict are not served, so they cannot overlap.
 */
export function overlappingTls(
  candidates: readonly ListenerCandidate[],
  views: readonly ListenerView[],
): ReadonlyMap<string, Failure> {
  const terminatingKeys = new Set(candidates.flatMap(({ view, tls }) => (tls ? [view.key] : [])))
  const served = views.filter((view) => terminatingKeys.has(view.key) && isUsable(view))
  const byName = new Map(served.map((view) => [nameOf(view.port, view.hostname), view]))
  const found = new Map<string, Failure>()
  for (const view of served) {
    for (const wider of widerNames(view.hostname)) {
      const other = byName.get(nameOf(view.port, wider))
      if (other === undefined) continue
      recordOverlap(found, view, other)
      recordOverlap(found, other, view)
    }
  }
  return found
}

const nameOf = (port: number, hostname: string) => `${port}/${hostname}`

/** The wildcards that cover a hostname, and '' for the listener without hostname. */
function widerNames(hostname: string): string[] {
  if (hostname === '') return []
  const labels = hostname.split('.')
  const from = hostname.startsWith('*.') ? 2 : 1
  const wildcards = labels.slice(from).map((_, at) => `*.${labels.slice(from + at).join('.')}`)
  return [...wildcards, '']
}

/** Records the first overlap of a listener. */
function recordOverlap(found: Map<string, Failure>, view: ListenerView, other: ListenerView): void {
  if (found.has(view.key)) return
  const { owner, section, hostname } = other
  const place = `listener ${section} of ${owner.kind} ${owner.namespace}/${owner.name}`
  const names = hostname === '' ? 'which takes every name' : `which takes ${hostname}`
  const effect =
    view.protocol === 'HTTPS'
      ? '; a request for its names on a connection of this listener gets status 421'
      : ''
  const message = `shares port ${view.port} with ${place}, ${names}${effect}`
  found.set(view.key, { reason: 'OverlappingHostnames', message })
}
