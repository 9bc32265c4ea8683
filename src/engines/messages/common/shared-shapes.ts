/** Shapes that several client formats share. */
import { anyObject, number, text } from './shape.ts'

export const schema = anyObject
export const generateContentFields = { cachedContent: text, labels: anyObject }
export const sampling = { temperature: number, top_p: number, top_k: number }
