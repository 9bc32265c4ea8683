/**
 * Listeners of one port whose names overlap, though each has a TLS configuration of its own: a client
 * that reuses a connection may ask under one for what is the other's (Gateway API,
 * ListenerConditionOverlappingTLSConfig; RFC 9110 7.4).
 */
import type { Failure } from '../conditions.ts'
import { type Candidate, isUsable, type ListenerView } from './listeners.ts'

/**
 * By key of the listener, what it overlaps with; none for those that overlap with nothing. `views` are
 * the listeners with their conflicts, since one that loses its place has no configuration in force.
 */
export function overlappingTls(
  candidates: readonly Candidate[],
  views: readonly ListenerView[],
): Readonly<Record<string, Failure>> {
  const ending = new Set(candidates.flatMap(({ view, tls }) => (tls ? [view.key] : [])))
  const served = views.filter((view) => ending.has(view.key) && isUsable(view))
  const byName = new Map(served.map((view) => [nameOf(view.port, view.hostname), view]))
  const found = new Map<string, Failure>()
  for (const view of served) {
    for (const wider of widerNames(view.hostname)) {
      const other = byName.get(nameOf(view.port, wider))
      if (other === undefined) continue
      note(found, view, other)
      note(found, other, view)
    }
  }
  return Object.fromEntries(found)
}

const nameOf = (port: number, hostname: string) => `${port}/${hostname}`

/** The wildcards that cover a hostname, and the hostname that covers every other: none. */
function widerNames(hostname: string): string[] {
  if (hostname === '') return []
  const labels = hostname.split('.')
  const from = hostname.startsWith('*.') ? 2 : 1
  const wildcards = labels.slice(from).map((_, at) => `*.${labels.slice(from + at).join('.')}`)
  return [...wildcards, '']
}

/** The first of several is named. */
function note(found: Map<string, Failure>, view: ListenerView, other: ListenerView): void {
  if (found.has(view.key)) return
  const { owner, section, hostname } = other
  const place = `listener ${section} of ${owner.kind} ${owner.namespace}/${owner.name}`
  const names = hostname === '' ? 'which takes every name' : `which takes ${hostname}`
  const effect =
    view.protocol === 'HTTPS'
      ? '; a request for its names on a connection of this listener is answered 421'
      : ''
  const message = `shares port ${view.port} with ${place}, ${names}${effect}`
  found.set(view.key, { reason: 'OverlappingHostnames', message })
}
