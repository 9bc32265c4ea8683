/** The built-in detectors of regular expressions. */
import {
  DETECT_AADHAAR,
  DETECT_API_KEY,
  DETECT_BSN,
  DETECT_CARD,
  DETECT_CNPJ,
  DETECT_CPF,
  DETECT_EMAIL,
  DETECT_FISCAL_CODE,
  DETECT_IBAN,
  DETECT_IP,
  DETECT_NHS,
  DETECT_NIF,
  DETECT_NINO,
  DETECT_NIR,
  DETECT_PERSONNUMMER,
  DETECT_PESEL,
  DETECT_PHONE,
  DETECT_PRIVATE_KEY,
  DETECT_SECRET,
  DETECT_SIN,
  DETECT_SSN,
  DETECT_TAX_ID,
  DETECT_VAT,
} from './abi.ts'

/** The bits by which the core knows the detectors. */
export const builtinBits = {
  Ssn: DETECT_SSN,
  CreditCard: DETECT_CARD,
  PhoneNumber: DETECT_PHONE,
  Email: DETECT_EMAIL,
  CaSin: DETECT_SIN,
  Iban: DETECT_IBAN,
  IpAddress: DETECT_IP,
  ApiKey: DETECT_API_KEY,
  PrivateKey: DETECT_PRIVATE_KEY,
  VatNumber: DETECT_VAT,
  DeTaxId: DETECT_TAX_ID,
  FrNir: DETECT_NIR,
  EsNif: DETECT_NIF,
  ItFiscalCode: DETECT_FISCAL_CODE,
  NlBsn: DETECT_BSN,
  PlPesel: DETECT_PESEL,
  SePersonnummer: DETECT_PERSONNUMMER,
  UkNino: DETECT_NINO,
  UkNhs: DETECT_NHS,
  InAadhaar: DETECT_AADHAAR,
  BrCpf: DETECT_CPF,
  BrCnpj: DETECT_CNPJ,
  Secret: DETECT_SECRET,
} as const

/** Built-in detectors of the core; docs/regex.md says what each matches. */
export type Builtin = keyof typeof builtinBits

/** Names of the detectors. */
export const builtinNames = Object.keys(builtinBits) as readonly Builtin[]

/** Replacements for matches of builtins unless a rule has another one. */
export const builtinReplacements: Readonly<Record<Builtin, string>> = {
  Ssn: '<SSN>',
  CreditCard: '<CREDIT_CARD>',
  PhoneNumber: '<PHONE_NUMBER>',
  Email: '<EMAIL_ADDRESS>',
  CaSin: '<CA_SIN>',
  Iban: '<IBAN>',
  IpAddress: '<IP_ADDRESS>',
  ApiKey: '<API_KEY>',
  PrivateKey: '<PRIVATE_KEY>',
  VatNumber: '<VAT_NUMBER>',
  DeTaxId: '<DE_TAX_ID>',
  FrNir: '<FR_NIR>',
  EsNif: '<ES_NIF>',
  ItFiscalCode: '<IT_FISCAL_CODE>',
  NlBsn: '<NL_BSN>',
  PlPesel: '<PL_PESEL>',
  SePersonnummer: '<SE_PERSONNUMMER>',
  UkNino: '<UK_NINO>',
  UkNhs: '<UK_NHS>',
  InAadhaar: '<IN_AADHAAR>',
  BrCpf: '<BR_CPF>',
  BrCnpj: '<BR_CNPJ>',
  Secret: '<SECRET>',
}
