/** Calls of tools in responses, for expressions. */
import { stringAt } from '../json/json.ts'

export interface OutputCall {
  id: string
  name: string
  /** JSON as the model wrote it, or the text for a custom tool. */
  arguments: string
}

/** Adds a piece of a streamed call; pieces with the same key are of one call. */
export type AddCall = (key: string, piece: OutputCall) => void

export const textAt = (value: unknown, name: string): string => stringAt(value, name) ?? ''
