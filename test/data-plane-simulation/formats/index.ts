/** The formats of clients and vendors. */
import { completions } from './completions.ts'
import type { ClientFormat, VendorFormat } from './format.ts'
import { generateContent } from './generate-content.ts'
import { messages } from './messages.ts'
import { responses } from './responses.ts'

/** The formats of clients by the names of route types. */
export const clientFormats = {
  Completions: completions,
  Messages: messages,
  Responses: responses,
} as const
export const vendorNames = ['vendorA', 'vendorC', 'vendorD'] as const
export type VendorName = (typeof vendorNames)[number]

/** Returns the format that a vendor is asked in for a client. */
export function vendorFormatFor(vendor: VendorName, client: ClientFormat): VendorFormat {
  if (vendor === 'vendorC') return messages
  if (vendor === 'vendorD') return generateContent
  return client === responses ? responses : completions
}

/** Returns the data of the events that have arrived as a whole. */
export function dataOfEvents(text: string): unknown[] {
  const lines = text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((event) => event.split('\n'))
  const data = lines.filter((line) => line.startsWith('data: {')).map((line) => line.slice(6))
  return data.map((one) => JSON.parse(one) as unknown)
}

/** Returns the text of the events that have arrived as a whole. */
export const textOfEvents = (format: ClientFormat, text: string): string =>
  dataOfEvents(text).map(format.textOfEvent).join('')
