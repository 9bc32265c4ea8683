/** Sources of texts that vendor D found in the web. */
import type { Citation } from '../../chat.ts'
import type { Utf8Places } from '../../common/utf8-places.ts'
import { listAt, numberAt, objectAt, stringAt } from '../../json/json.ts'

/** Returns the sources of a candidate, whose whole text this is; a source without a place belongs to all of it. */
export function groundingOf(candidate: unknown, text: Utf8Places): Citation[] {
  const metadata = objectAt(candidate, 'groundingMetadata')
  if (metadata === undefined) return []
  const sources = listAt(metadata, 'groundingChunks').map(sourceOf)
  const placed = listAt(metadata, 'groundingSupports').flatMap((support) => {
    const segment = objectAt(support, 'segment')
    const start = text.characterAt(numberAt(segment, 'startIndex') ?? 0)
    const endByte = numberAt(segment, 'endIndex')
    const end = endByte === undefined ? text.length : text.characterAt(endByte)
    return listAt(support, 'groundingChunkIndices').flatMap((at): Citation[] => {
      const source = sources[Number(at)]
      return source === undefined ? [] : [{ ...source, range: { start, end } }]
    })
  })
  return placed.length > 0 ? placed : sources.filter((source) => source !== undefined)
}

function sourceOf(chunk: unknown): Citation | undefined {
  const web = objectAt(chunk, 'web')
  const url = stringAt(web, 'uri')
  return url === undefined ? undefined : { url, title: stringAt(web, 'title') }
}
