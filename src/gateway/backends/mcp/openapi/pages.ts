/** Further pages of a result: says with which arguments a model gets the next one. Nothing is followed. */
import type { OperationPlan } from './operations.ts'

/** Maximum length of a `Link` header that is read. */
const maxLink = 8_192

/**
 * Returns the arguments in `query` that a link with `rel="next"` (RFC 8288) changes; undefined if there is none. Only
 * parameters of the operation count, so a response can name no other destination.
 */
export function nextPage(
  { parameters }: OperationPlan,
  link: string | undefined,
): Readonly<Record<string, string>> | undefined {
  const target = link === undefined || link.length > maxLink ? undefined : nextLink(link)
  if (target === undefined || !URL.canParse(target, 'http://api')) return undefined
  const { searchParams } = new URL(target, 'http://api')
  const found = parameters.flatMap(({ name, in: place }) => {
    const value = place === 'query' ? searchParams.get(name) : null
    return value === null ? [] : [[name, value] as const]
  })
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

function nextLink(link: string): string | undefined {
  for (const [, target, parameters = ''] of link.matchAll(/<([^<>]*)>([^<>]*)/g)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    const relations = (quoted ?? bare ?? '').toLowerCase().split(/\s+/)
    if (relations.includes('next')) return target
  }
  return undefined
}

/** The note to the model about the next page. */
export const pageHint = (next: Readonly<Record<string, string>>): string =>
  `[There are more results. For the next page, call this tool again with the same arguments, but these in query: ${JSON.stringify(next)}]`
