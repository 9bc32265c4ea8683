/** Streams in the generate-content format with many events or items of one kind. */
import { data, type StreamBuilders, times } from './items.ts'

const ca = (parts: readonly unknown[], more: object = {}) =>
  data({
    candidates: [{ index: 0, content: { parts }, ...more }],
    responseId: 'r',
    modelVersion: 'm',
  })
const ge = ca([], { finishReason: 'STOP' })
export const eventsOfGenerateContent: StreamBuilders = {
  calls: (n) => times(n, () => ca([{ functionCall: { name: 'f', args: {} } }])).join('') + ge,
  callsOneEvent: (n) => ca(times(n, () => ({ functionCall: { name: 'f', args: {} } }))) + ge,
  callsSigned: (n) =>
    times(n, () => ca([{ functionCall: { name: 'f', args: {} }, thoughtSignature: 's' }])).join(
      '',
    ) + ge,
  texts: (n) => ca([{ text: 'x' }]).repeat(n) + ge,
  textsOneEvent: (n) => ca(times(n, () => ({ text: 'x' }))) + ge,
  alternating: (n) =>
    times(n, (i) => ca([i % 2 ? { text: 'x' } : { text: 'x', thought: true }])).join('') + ge,
  alternatingOneEvent: (n) =>
    ca(times(n, (i) => (i % 2 ? { text: 'x' } : { text: 'x', thought: true }))) + ge,
  candidates: (n) =>
    times(n, (i) => data({ candidates: [{ index: i, content: { parts: [{ text: 'x' }] } }] })).join(
      '',
    ) + ge,
  candidatesOneEvent: (n) =>
    data({ candidates: times(n, (i) => ({ index: n - i, content: { parts: [{ text: 'x' }] } })) }) +
    ge,
  grounding: (n) =>
    times(n, (i) =>
      ca([{ text: 'x' }], {
        groundingMetadata: {
          groundingChunks: [{ web: { uri: `http://x/${i}`, title: 't' } }],
          groundingSupports: [
            { segment: { startIndex: 0, endIndex: 1, text: 'x' }, groundingChunkIndices: [0] },
          ],
        },
      }),
    ).join('') + ge,
  groundingOne: (n) =>
    ca([{ text: 'x'.repeat(n) }], {
      groundingMetadata: {
        groundingChunks: times(n, (i) => ({ web: { uri: `http://x/${i}`, title: 't' } })),
        groundingSupports: times(n, (i) => ({
          segment: { startIndex: i, endIndex: i + 1, text: 'x' },
          groundingChunkIndices: [i],
        })),
      },
    }) + ge,
  images: (n) =>
    times(n, () => ca([{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }])).join('') + ge,
  usage: (n) =>
    times(n, (i) =>
      data({ usageMetadata: { promptTokenCount: 1, candidatesTokenCount: i, [`k${i}`]: 2 } }),
    ).join('') + ge,
  signatures: (n) =>
    times(n, () => ca([{ text: 'x', thought: true, thoughtSignature: 's' }])).join('') + ge,
}
