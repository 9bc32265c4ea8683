/**
 * A resource as one Gateway may see it. A route can be attached to listeners of several Gateways,
 * and each of those is told of its own listeners alone: names, and which hostnames are served where,
 * are the business of whoever owns the others.
 */
import { contentVersion } from '../base/content-version.ts'
import type { VersionedResource } from '../model/resources.ts'
import type { Node } from './edges.ts'

/** The same object where there is nothing to leave out; `members` is the scope of the Gateway. */
export function within(
  versioned: VersionedResource,
  members: ReadonlySet<Node>,
): VersionedResource {
  const { resource } = versioned
  if (resource.type !== 'route' && resource.type !== 'stream') return versioned
  const attachments = resource.attachments.filter(({ listener }) => members.has(listener))
  if (attachments.length === resource.attachments.length) return versioned
  const own = { ...resource, attachments }
  return { version: contentVersion(own), resource: own }
}
