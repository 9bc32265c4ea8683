import type { Answer } from '../../worker/protocol.ts'

/** What the page of an object and its tabs show. */
export type ObjectAnswer = Answer<'object'>
