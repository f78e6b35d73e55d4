from pydantic import BaseModel


class Place(BaseModel):
    city: str
    people: int


class Person(BaseModel):
    name: str
    age: int
    home: Place
