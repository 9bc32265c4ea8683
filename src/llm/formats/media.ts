/** Images in requests: data URLs taken apart and put together (RFC 2397, base64 only). */
import type { MediaSource } from '../chat.ts'

const dataUrl = /^data:([^;,]+)(?:;[^;,]+)*;base64,(.*)$/s

export function sourceOfUrl(url: string): MediaSource {
  const [, mediaType, data] = dataUrl.exec(url) ?? []
  return mediaType !== undefined && data !== undefined
    ? { type: 'data', mediaType, data }
    : { type: 'url', url }
}

export function urlOfSource(source: MediaSource): string {
  return source.type === 'url' ? source.url : `data:${source.mediaType};base64,${source.data}`
}
