/**
 * Chooses the backends of requests whose rule gets other weights. Backends are chosen at random, so that only the
 * number of requests that move is known. A request stays where it was with the largest possible probability, and
 * the same request always moves alike.
 */
import { hash } from 'node:crypto'
import { nameTarget } from '../../gateway/proxy/config/rules.ts'
import type { RouteResource } from '../../ground/model/resources.ts'

/** Returns the backend that a request moves to; undefined if it stays. */
export function movedBackend(
  id: string,
  backend: string,
  { before, after }: { readonly before: RouteResource; readonly after: RouteResource },
): string | undefined {
  const [old, fresh] = [sharesOf(before), sharesOf(after)]
  const [now = 0, then = 0] = [old.get(backend), fresh.get(backend)]
  const draw = drawOf(id)
  if (then >= now || draw < then / now) return undefined
  const gains = [...fresh].flatMap(([label, share]) => {
    const gain = share - (old.get(label) ?? 0)
    return gain > 0 ? [{ label, gain }] : []
  })
  const total = gains.reduce((sum, { gain }) => sum + gain, 0)
  let rest = ((draw - then / now) / (1 - then / now)) * total
  for (const { label, gain } of gains) {
    if (rest < gain) return label
    rest -= gain
  }
  return gains.at(-1)?.label
}

function sharesOf({ backends }: RouteResource): ReadonlyMap<string, number> {
  const total = backends.reduce((sum, { weight }) => sum + weight, 0)
  const shares = new Map<string, number>()
  for (const { target, weight } of total === 0 ? [] : backends) {
    const label = nameTarget(target).label ?? target.type
    shares.set(label, (shares.get(label) ?? 0) + weight / total)
  }
  return shares
}

/** A number from 0 to below 1 that depends only on the id of a request. */
const drawOf = (id: string): number => hash('sha256', id, 'buffer').readUInt32BE() / 2 ** 32
