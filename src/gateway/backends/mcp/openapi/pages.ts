/** Further pages of a result: finds the arguments of the next one, and joins pages. */
import { isObject } from '../../../../ground/base/json-object.ts'
import { type Fields, fieldsOf, listOf, pointerParts } from './document.ts'
import type { OperationPlan } from './operations.ts'

/** Arguments in `query` that differ on the next page. */
export type NextPage = Readonly<Record<string, string | number>>

interface PagedResponse {
  /** The `Link` header. */
  readonly link: string | undefined
  /** The parsed body; undefined if it is not JSON, or not whole. */
  readonly body: unknown
}

/** Maximum length of a `Link` header that is read. */
const maxLink = 8_192

/**
 * Returns the arguments of the next page; undefined if the response names none. They come from a link of the document
 * to the operation itself, a link with the relation `next` (RFC 8288, JSON:API, HAL), or a member such as
 * `next_cursor` for the parameter `cursor`. Only query parameters of the operation count, so a response can name no
 * other destination.
 */
export function nextPage(plan: OperationPlan, { link, body }: PagedResponse): NextPage | undefined {
  const names = plan.parameters.flatMap(({ name, in: place }) => (place === 'query' ? [name] : []))
  if (names.length === 0) return undefined
  const declared = argumentsFrom(Object.entries(plan.nextPage ?? {}), body)
  const target = link === undefined || link.length > maxLink ? undefined : nextLink(link)
  return declared ?? queryOf(target, names) ?? queryOf(nextIn(body), names) ?? namedIn(body, names)
}

function nextLink(link: string): string | undefined {
  for (const [, target, parameters = ''] of link.matchAll(/<([^<>]*)>([^<>]*)/g)) {
    const [, quoted, bare] = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? []
    const relations = (quoted ?? bare ?? '').toLowerCase().split(/\s+/)
    if (relations.includes('next')) return target
  }
  return undefined
}

/** A URL in a body: `next`, `links.next` or `_links.next.href`. */
function nextIn(body: unknown): string | undefined {
  const { next, links, _links } = fieldsOf(body)
  const found = [next, fieldsOf(links).next, fieldsOf(_links).next]
    .map((one) => (isObject(one) ? one.href : one))
    .find((one) => typeof one === 'string' && one.includes('?'))
  return typeof found === 'string' ? found : undefined
}

function queryOf(target: string | undefined, names: readonly string[]): NextPage | undefined {
  if (target === undefined || !URL.canParse(target, 'http://api')) return undefined
  const { searchParams } = new URL(target, 'http://api')
  return nonEmpty(names.map((name) => [name, searchParams.get(name)]))
}

/** Maximum length of the name of a member that is read. */
const maxName = 64
/** Members of bodies that often contain the fields of a page. */
const holders = ['meta', 'pagination', 'paging', 'page', 'response_metadata']

const plain = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, '')

function namedIn(body: unknown, names: readonly string[]): NextPage | undefined {
  const whole = fieldsOf(body)
  const members = [whole, ...holders.map((name) => fieldsOf(whole[name]))]
    .flatMap(Object.entries<unknown>)
    .filter(([key]) => key.length <= maxName && /^next/i.test(key))
  const byName = new Map(members.map(([key, value]) => [plain(key), value]))
  return nonEmpty(names.map((name) => [name, byName.get(`next${plain(name)}`)]))
}

function nonEmpty(found: readonly (readonly [string, unknown])[]): NextPage | undefined {
  const values = found.filter(
    (pair): pair is readonly [string, string | number] =>
      typeof pair[1] === 'number' || (typeof pair[1] === 'string' && pair[1] !== ''),
  )
  return values.length === 0 ? undefined : Object.fromEntries(values)
}

function argumentsFrom(
  places: readonly (readonly [name: string, pointer: string])[],
  body: unknown,
): NextPage | undefined {
  return nonEmpty(places.map(([name, pointer]) => [name, valueAt(body, pointer)]))
}

function valueAt(body: unknown, pointer: string): unknown {
  let found = body
  for (const part of pointerParts(pointer)) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, part)) return undefined
    found = (found as Fields)[part]
  }
  return found
}

// Joined pages ------------------------------------------------------------------------------------

/** Returns the name of the list in a body: the only member that is a list, or `''` if the body itself is one. */
function listName(body: unknown): string | undefined {
  if (Array.isArray(body)) return ''
  const lists = Object.entries(fieldsOf(body)).filter(([, one]) => Array.isArray(one))
  return lists.length === 1 ? lists[0]?.[0] : undefined
}

/** Whether a page can be joined with those before it. */
export const isJoinable = (pages: readonly unknown[], page: unknown): boolean => {
  const name = listName(page)
  return name !== undefined && pages.every((one) => listName(one) === name)
}

/** Joins the lists of pages. The other members are those of the last page. */
export function joinPages(pages: readonly unknown[]): unknown {
  const last = pages.at(-1)
  const name = listName(last) ?? ''
  if (name === '') return pages.flatMap(listOf)
  return { ...fieldsOf(last), [name]: pages.flatMap((page) => listOf(fieldsOf(page)[name])) }
}

/** The note to the model about the next page. `count` is the number of joined pages. */
export function pageHint(next: NextPage, count = 1): string {
  const what = count === 1 ? 'There are more results.' : `These are ${count} pages of the results.`
  return `[${what} For the next page, call this tool again with the same arguments, but these in query: ${JSON.stringify(next)}]`
}
