/** What the bodies of an exchange must be on each side. */

/** Says what is wrong with bytes that one side has received; undefined if nothing is. */
export interface Content {
  /** `isWhole`: whether the upstream takes them for the whole body. */
  problemOfRequest(received: Buffer, isWhole: boolean): string | undefined
  /** `isWhole`: whether the client takes them for the whole body. */
  problemOfResponse(received: Buffer, isWhole: boolean): string | undefined
}

/** Bytes that pass unchanged. */
export class PlainContent implements Content {
  readonly #request: Buffer
  readonly #response: Buffer

  constructor(request: Buffer, response: Buffer) {
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

function problemOf(received: Buffer, sent: Buffer, isWhole: boolean): string | undefined {
  if (!received.equals(sent.subarray(0, received.length))) return 'gets another body'
  if (!isWhole || received.length === sent.length) return undefined
  return `gets ${received.length} of ${sent.length} bytes as a whole body`
}
