/** Citations in texts of the messages format. */
import type { Citation } from '../../chat.ts'
import { type JsonObject, stringAt } from '../../json/json.ts'

/** Reads a citation; undefined if its source is not in the web, such as a document of the request. */
export function readCitation(citation: unknown): Citation | undefined {
  const url = stringAt(citation, 'url') ?? stringAt(citation, 'source')
  if (url === undefined || !/^https?:/i.test(url)) return undefined
  return { url, title: stringAt(citation, 'title'), quote: stringAt(citation, 'cited_text') }
}

/** The format encrypts positions in sources for its own vendor; other vendors have none. */
export const writeCitation = ({ url, title, quote = '' }: Citation): JsonObject => ({
  type: 'web_search_result_location',
  url,
  title: title ?? null,
  cited_text: quote,
  encrypted_index: '',
})
