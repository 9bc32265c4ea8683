/** What the bodies of an exchange must be on each side. */

/** Says what is wrong with bytes that one side has received; undefined if nothing is. */
export interface Content {
  /** `isWhole`: whether the upstream takes them for the whole body. */
  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined
  /** `isWhole`: whether the client takes them for the whole body. */
  problemOfResponse(received: Buffer, isWhole: boolean): string | undefined
}

/** Bytes that a receiver may get. */
export interface Passing {
  readonly bytes: Buffer
  /** Whether a receiver may take them for the whole body. */
  readonly isWhole: boolean
}

export const whole = (bytes: Buffer): Passing => ({ bytes, isWhole: true })

/** Bytes that are known in advance. */
export class PlainContent implements Content {
  readonly #request: Passing
  readonly #response: Passing

  constructor(request: Passing, response: Passing) {
    this.#request = request
    this.#response = response
  }

  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined {
    return problemOf(received, this.#request, isWhole)
  }

  problemOfResponse(received: Buffer, isWhole: boolean): string | undefined {
    return problemOf(received, this.#response, isWhole)
  }
}

function problemOf(received: Buffer, { bytes, isWhole: mayBeWhole }: Passing, isWhole: boolean) {
  if (!received.equals(bytes.subarray(0, received.length))) return 'gets another body'
  if (!isWhole || (mayBeWhole && received.length === bytes.length)) return undefined
  return `gets ${received.length} of ${bytes.length} bytes as a whole body`
}
